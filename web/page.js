/* What the scripts of the report and of the explorer have in common. Everything from data is
   put in as text (textContent), never as HTML. */
const byId = id => document.getElementById(id);

/* make('p', {class: 'soft'}, 'words', child) */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter(child => child != null));
  return element;
}
const isolated = words => make('bdi', {}, words);
const whole = n => n.toLocaleString('en');
const myriads = n => (n / 10000).toFixed(4);
/* The largest k with k/n not above x, and the smallest with k/n not below it: what is shown of a bound is not
   rounded to the side that claims more. */
function stepsDown(x, n) {
  let k = Math.floor(x * n) + 1;
  while (k / n > x) k--;
  return k;
}
const stepsUp = (x, n) => -stepsDown(-x, n);
/* Characters that cannot be shown, one for one, so that places in a text stay. */
const visible = words => words.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '\ufffd');

/* Where an overlap stands in the legend: 0 is s = 1. */
const LEVELS = [[10000, 's = 1'], [9000, 'at least 0.9'], [7500, 'at least 0.75'], [5000, 'at least 0.5'],
  [0, 'below 0.5']];
const levelOf = s => LEVELS.findIndex(level => s >= level[0]);
const legend = () => make('div', {class: 'legend'}, 'overlap s of a word with its worst synonym: ',
  ...LEVELS.map((level, k) => make('span', {class: 'w o' + k}, level[1])));

/* Arrow keys go from word to word; only one of them is in the order of Tab. */
function moveWord(event) {
  const steps = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
  if (!(event.key in steps) || !event.target.dataset.word) return;
  event.preventDefault();
  const all = Array.from(event.currentTarget.querySelectorAll('.w')),
    next = all[all.indexOf(event.target) + steps[event.key]];
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

