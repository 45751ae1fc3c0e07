/* Makes the report's table sort, filter and scroll, and opens texts (docs/report.md). The page is whole
   without it. Everything from the data is put in as text (textContent), never as HTML. */
(() => {
'use strict';
/* @include page.js */
const data = JSON.parse(document.getElementById('data').textContent);
const CERTIFIED = 1, ABSTAINED = 2, EXACT = 4, ANSWERED = 8;
const run = () => data.runs[state.run];
const labelOf = (r, k) => k < 0 ? '\u2013' : r.labels[k];
const isRight = (r, i) => r.label[i] >= 0 && r.label[i] === r.prediction[i];
const hasVotes = r => !r.margin; /* else it was certified by interval bounds */
const radiusOf = n => n < 0 ? 'all' : whole(n);

/* Of very many texts the page has only some, spread evenly: sf_page_row in src/report/runs.c. */
const rowOf = (r, i) => Math.floor(i * r.rows / r.id.length) + 1;

/* ------------------------------------------------------------------ the table */

const COLUMNS = {
  row: {value: (r, i) => i, text: (r, i) => String(rowOf(r, i))},
  id: {value: (r, i) => r.id[i], text: (r, i) => r.id[i], words: true},
  label: {value: (r, i) => labelOf(r, r.label[i]), text: (r, i) => labelOf(r, r.label[i]), words: true},
  prediction: {value: (r, i) => predictionOf(r, i), text: (r, i) => predictionOf(r, i), words: true},
  base: {value: (r, i) => labelOf(r, r.base[i]), text: (r, i) => labelOf(r, r.base[i]), words: true},
  words: {value: (r, i) => r.words[i]}, slots: {value: (r, i) => r.slots[i]},
  bound: {value: (r, i) => r.bound[i], text: (r, i) => hasVotes(r) ? myriads(r.bound[i]) : '\u2013'},
  q: {value: (r, i) => r.q[i], text: (r, i) => hasVotes(r) ? myriads(r.q[i]) : '\u2013'},
  radius: {value: (r, i) => r.radius[i] < 0 ? Infinity : r.radius[i], text: (r, i) => radiusOf(r.radius[i])},
  certified: {value: (r, i) => r.flags[i] & CERTIFIED, text: (r, i) => r.flags[i] & CERTIFIED ? 'yes' : 'no'},
  queries: {value: (r, i) => r.queries[i]},
  edits: {value: (r, i) => r.edits ? r.edits[i] : -1, text: (r, i) => r.edits ? whole(r.edits[i]) : '\u2013'},
  attack: {value: (r, i) => FATES[fateOf(r, i)], text: (r, i) => FATES[fateOf(r, i)]},
};
const FATES = ['\u2013', 'held', 'fell', 'wrong before'], HELD = 1, FELL = 2; /* as in src/report/page.c */
function fateOf(r, i) { return r.attack ? r.attack[i] : 0; }
function predictionOf(r, i) { return r.flags[i] & ABSTAINED ? 'abstained' : labelOf(r, r.prediction[i]); }

const OUTCOMES = {
  'all texts': () => true,
  'certified': (r, i) => r.flags[i] & CERTIFIED,
  'certified and answered': (r, i) => r.flags[i] & CERTIFIED && r.flags[i] & ANSWERED,
  'certified, not answered': (r, i) => r.flags[i] & CERTIFIED && !(r.flags[i] & ANSWERED),
  'not certified': (r, i) => !(r.flags[i] & CERTIFIED),
  'right, not certified': (r, i) => isRight(r, i) && !(r.flags[i] & CERTIFIED),
  'wrong': (r, i) => r.label[i] >= 0 && !isRight(r, i),
  'base model wrong': (r, i) => r.label[i] >= 0 && r.label[i] !== r.base[i],
  'abstained': (r, i) => r.flags[i] & ABSTAINED,
  'exact': (r, i) => r.flags[i] & EXACT,
};
if (data.runs.some(r => r.attack)) Object.assign(OUTCOMES, {
  'held against every attack': (r, i) => fateOf(r, i) === HELD,
  'fell to an attack': (r, i) => fateOf(r, i) === FELL,
  'held, not certified': (r, i) => fateOf(r, i) === HELD && !(r.flags[i] & CERTIFIED),
});

const state = {run: 0, sort: 'row', down: false, needle: '', label: -2, outcome: 'all texts', order: [], active: 0,
  opened: -1};
const frame = byId('window'), table = byId('table'), body = table.tBodies[0];
const KEYS = Array.from(table.tHead.rows[0].cells, head => head.dataset.key);
const isNumber = Array.from(table.tHead.rows[0].cells, head => head.classList.contains('n'));
let ROW = 36; /* pixels; measured once there are rows, because readers enlarge text */

function compare(a, b) {
  if (typeof a === 'string') return a < b ? -1 : a > b ? 1 : 0;
  return a === b ? 0 : a - b; /* two infinities are equal */
}

/* Numbers inside ids count as numbers: test-2 before test-10. */
const collator = new Intl.Collator('en', {numeric: true});

function arrange() {
  const r = run(), needle = state.needle.toLowerCase(), keep = OUTCOMES[state.outcome], order = [];
  for (let i = 0; i < r.id.length; i++)
    if ((state.label === -2 || r.label[i] === state.label) && keep(r, i) && (!needle || matches(r, i, needle)))
      order.push(i);
  const column = COLUMNS[state.sort], keys = new Array(r.id.length);
  for (const i of order) keys[i] = column.value(r, i);
  const by = column.words ? (a, b) => collator.compare(keys[a], keys[b]) : (a, b) => compare(keys[a], keys[b]);
  if (state.sort !== 'row') order.sort((a, b) => by(a, b) || a - b);
  if (state.down) order.reverse();
  state.order = order;
  state.active = 0;
  byId('shown').textContent = order.length === r.id.length ? whole(order.length) + ' texts'
    : whole(order.length) + ' of ' + whole(r.id.length) + ' texts';
  if (r.rows > r.id.length) byId('shown').textContent += ', which are spread evenly over all ' + whole(r.rows) +
    '; figures and pictures are about all';
  frame.scrollTop = 0;
  draw(true);
}

function matches(r, i, needle) {
  if (r.id[i].toLowerCase().includes(needle)) return true;
  return state.found ? state.found.has(i) : false;
}

function cells(i) {
  const r = run(), row = make('tr', {'data-index': i, 'aria-rowindex': 0});
  for (const [n, key] of KEYS.entries()) {
    const column = COLUMNS[key], words = column.text ? column.text(r, i) : whole(column.value(r, i));
    const cell = make('td', {class: isNumber[n] ? 'n' : null});
    if (key === 'id') {
      cell.append(make('button', {type: 'button', class: 'open', tabindex: -1, title: words},
        isolated(visible(words) || '(empty)')));
    } else {
      cell.append(column.words ? isolated(visible(words)) : words);
    }
    if (key === 'certified') cell.className = words === 'yes' ? 'good' : '';
    if (key === 'prediction' && r.label[i] >= 0 && !isRight(r, i)) cell.className = 'bad';
    if (key === 'attack' && fateOf(r, i) === FELL) cell.className = 'bad';
    row.append(cell);
  }
  return row;
}

let drawn = [-1, -1];
/* Only the rows in sight exist; two empty rows stand for the others. On paper there are the first ones, without these. */
const PRINTED = 200;
function draw(force) {
  const height = Math.max(frame.clientHeight, 300), first = Math.max(0, Math.floor(frame.scrollTop / ROW) - 10);
  const last = Math.min(state.order.length, first + Math.ceil(height / ROW) + 22);
  if (!force && drawn[0] === first && drawn[1] === last) return;
  drawn = [first, last];
  const held = body.contains(document.activeElement);
  const rows = [gap(first * ROW)];
  for (let at = first; at < last; at++) {
    const row = cells(state.order[at]);
    row.setAttribute('aria-rowindex', at + 2);
    row.dataset.at = at;
    if (at === state.active) row.querySelector('button').tabIndex = 0;
    rows.push(row);
  }
  rows.push(gap((state.order.length - last) * ROW));
  body.replaceChildren(...rows);
  table.setAttribute('aria-rowcount', state.order.length + 1);
  if (held) focusActive();
  if (!force) return; /* reading a height makes the browser lay out at once */
  const real = rows.length > 2 ? rows[1].getBoundingClientRect().height : ROW;
  if (real > 0 && Math.abs(real - ROW) > .01) { ROW = real; draw(true); }
}

function drawForPaper() {
  const count = Math.min(state.order.length, PRINTED);
  body.replaceChildren(...state.order.slice(0, count).map(cells));
  byId('printed').textContent = count < state.order.length ? 'The first ' + whole(count) + ' of them:' : '';
}

function gap(height) {
  const cell = make('td', {colspan: KEYS.length});
  cell.style.height = height + 'px';
  return make('tr', {class: 'gap', 'aria-hidden': 'true', hidden: height === 0}, cell);
}

function focusActive() {
  const row = body.querySelector('tr[data-at="' + state.active + '"]');
  if (row) row.querySelector('button').focus({preventScroll: true});
}

function moveTo(at) {
  if (!state.order.length) return;
  state.active = Math.max(0, Math.min(state.order.length - 1, at));
  const head = table.tHead.offsetHeight, top = state.active * ROW;
  if (top < frame.scrollTop) frame.scrollTop = top;
  else if (top + ROW + head > frame.scrollTop + frame.clientHeight)
    frame.scrollTop = top + ROW + head - frame.clientHeight;
  draw(true);
  focusActive();
}

function onKey(event) {
  const page = Math.max(1, Math.floor(frame.clientHeight / ROW) - 2);
  const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
  if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.target !== frame && !body.contains(event.target)) return;
  event.preventDefault();
  moveTo(event.target === frame && body.contains(document.activeElement) === false && event.key === 'ArrowDown'
    ? Math.floor(frame.scrollTop / ROW) : state.active + steps[event.key]);
}

function sortBy(key) {
  state.down = state.sort === key ? !state.down : false;
  state.sort = key;
  markSort();
  arrange();
}

function markSort() {
  for (const head of table.tHead.rows[0].cells)
    head.setAttribute('aria-sort', head.dataset.key !== state.sort ? 'none' : state.down ? 'descending' : 'ascending');
}

/* ------------------------------------------------------------------ the controls */

const option = (value, words) => make('option', {value}, words);

function fillLabels(select) {
  select.replaceChildren(option(-2, 'any'), ...run().labels.map((label, k) => option(k, visible(label))));
  state.label = -2;
}

function makeControls() {
  const byLabel = event => { state.label = Number(event.target.value); arrange(); };
  const byOutcome = event => { state.outcome = event.target.value; arrange(); };
  const byWords = event => { state.needle = event.target.value; findLater(); };
  const labels = make('select', {id: 'by-label', onchange: byLabel});
  const outcomes = make('select', {id: 'by-outcome', onchange: byOutcome},
    ...Object.keys(OUTCOMES).map(name => option(name, name)));
  const search = make('input', {id: 'by-id', type: 'search', autocomplete: 'off', oninput: byWords});
  const parts = [make('label', {}, run().texts ? 'id or words' : 'id', search), make('label', {}, 'label', labels),
    make('label', {}, 'outcome', outcomes)];
  if (data.runs.length > 1)
    parts.unshift(make('label', {}, 'run',
      make('select', {id: 'by-run', onchange: event => { chooseRun(Number(event.target.value)); }},
      ...data.runs.map((r, k) => option(k, visible(r.name))))));
  fillLabels(labels);
  byId('controls').append(...parts);
  byId('controls').hidden = false;
}

function chooseRun(number) {
  state.run = number;
  if (byId('by-run')) byId('by-run').value = number;
  fillLabels(byId('by-label'));
  state.found = null;
  if (state.needle) findLater();
  arrange();
}

/* Ids at once; texts, which have to be unpacked, when the typing pauses. */
let waiting = 0, search = 0;
function findLater() {
  state.found = null;
  search++;
  clearTimeout(waiting);
  waiting = setTimeout(find, 150);
}

async function find() {
  const mine = search, needle = state.needle.toLowerCase(), r = run();
  arrange();
  if (!needle || !r.texts || needle.length < 2) return;
  const found = new Set();
  for (let b = 0; b * data.textsPerBlock < r.texts; b++) {
    const texts = await block('texts-' + b);
    if (mine !== search) return; /* something else was typed */
    texts.forEach((text, i) => {
      const words = String(Array.isArray(text) ? text[0] : text).toLowerCase();
      if (words.includes(needle)) found.add(b * data.textsPerBlock + i);
    });
  }
  state.found = found;
  arrange();
}

/* ------------------------------------------------------------------ packed blocks */

const blocks = new Map();

function block(id) {
  if (!blocks.has(id)) {
    blocks.set(id, unpack(id));
    if (blocks.size > 300) blocks.delete(blocks.keys().next().value);
  }
  return blocks.get(id);
}

async function unpack(id) {
  const packed = atob(byId(id).textContent), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

/* ------------------------------------------------------------------ one text */

const dialog = make('dialog', {id: 'text', 'aria-labelledby': 'text-title'});
const title = make('h2', {id: 'text-title', tabindex: -1}), inside = make('div', {class: 'body'});
dialog.append(make('header', {}, title,
  make('button', {type: 'button', class: 'press', id: 'previous', onclick: () => step(-1)}, 'Previous'),
  make('button', {type: 'button', class: 'press', id: 'next', onclick: () => step(1)}, 'Next'),
  make('button', {type: 'button', class: 'press', id: 'close', onclick: () => dialog.close()}, 'Close')), inside);
/* The event comes a while after the closing. By then another text may be open, or asked for
   by the address: that one stays. */
dialog.addEventListener('close', () => {
  if (dialog.open) return;
  if (location.hash === address) history.replaceState(null, '', location.pathname + location.search);
  choose(-1);
  if (returnTo) returnTo();
});
dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
let returnTo = null, openings = 0, address = '';

function step(by) {
  const at = state.order.indexOf(state.opened) + by;
  if (at < 0 || at >= state.order.length) return;
  state.active = at;
  show(state.order[at]);
}

function open(i, back) {
  returnTo = back || null;
  const at = state.order.indexOf(i);
  if (at >= 0) state.active = at;
  show(i);
  if (!dialog.open) dialog.showModal();
  title.focus();
}

const pair = (name, words) => make('div', {}, make('dt', {}, name), make('dd', {}, words));

function facts(r, i) {
  const flags = r.flags[i], list = make('dl', {class: 'config'});
  list.append(pair('label', isolated(visible(labelOf(r, r.label[i])))),
    pair('prediction', isolated(visible(predictionOf(r, i)))),
    pair('base model', isolated(visible(labelOf(r, r.base[i])))), pair('certified', flags & CERTIFIED ? 'yes' : 'no'),
    pair('certificate for', isolated(visible(labelOf(r, r.target[i])))), pair('radius', radiusOf(r.radius[i])),
    pair('words, slots', whole(r.words[i]) + ', ' + whole(r.slots[i])));
  if (r.edits) list.append(pair('edits (' + r.editKind + ')', whole(r.edits[i]) + ' of ' + whole(r.editsAsked)),
    pair('tokens', whole(r.tokens[i])));
  if (hasVotes(r)) list.append(pair('bound', myriads(r.bound[i])),
    pair('bound needed', '> ' + myriads(5000 + r.q[i])), pair('q', myriads(r.q[i])),
    pair('draws', flags & EXACT ? exactly(r) : whole(r.n[i])), pair('queries', whole(r.queries[i])));
  else list.append(pair('least lead, logits', myriads(r.margin[i])));
  return list;
}

const exactly = r => 'all of them: exact' + (r.remote ? ', if the model is a function of the text' : '');

/* What edits are without effect, beside synonyms in as many words as were asked for. */
const KINDS = {any: 'put in, taken out or replaced', replace: 'replaced', insert: 'put in', delete: 'taken out'};
function editsOf(r, i) {
  if (!r.edits || !r.edits[i]) return '';
  const beside = r.radiusAsked < 0 ? ' any synonyms' : ' synonyms in ' + whole(r.radiusAsked) + ' words';
  return ' So it does with up to ' + whole(r.edits[i]) + (r.edits[i] === 1 ? ' word, number or mark ' :
    ' words, numbers or marks ') + KINDS[r.editKind] + ', beside' + beside + '.';
}

/* The certificate of a text in words. */
function verdict(r, i) {
  const target = isolated(visible(labelOf(r, r.target[i]))), radius = r.radius[i];
  const who = hasVotes(r) ? 'the smoothed classifier' : 'the model';
  const changed = radius < 0 ? 'Whatever words are exchanged for synonyms, '
    : 'With up to ' + whole(radius) + (radius === 1 ? ' word' : ' words') + ' exchanged, ';
  if (radius) return make('p', {class: 'verdict ' + (r.flags[i] & CERTIFIED ? 'good' : 'weak')},
    make('strong', {}, r.flags[i] & CERTIFIED ? 'Certified.' : 'Certified in part.'),
    ' ' + changed + who + ' answers ', target, '.', editsOf(r, i),
    r.flags[i] & ANSWERED ? '' : ' The vote on this text does not say so clearly: it is not answered.');
  const why = r.prediction[i] !== r.target[i] ? who[0].toUpperCase() + who.slice(1) + ' does not answer '
    : r.q[i] >= 5000
      ? 'What may be changed can move too much of what is drawn (q is at least one half), whatever the vote for '
      : 'It is not proven that no exchange changes the answer ';
  return make('p', {class: 'verdict ' + (isRight(r, i) || r.label[i] < 0 ? 'weak' : 'bad')},
    make('strong', {}, 'Not certified.'), ' ' + why, target, '.');
}

async function show(i) {
  const mine = ++openings, r = run();
  state.opened = i;
  choose(i);
  address = '#text=' + (state.run + 1) + '.' + (i + 1);
  history.replaceState(null, '', address);
  title.replaceChildren('Text ' + whole(rowOf(r, i)) + ': ', isolated(visible(r.id[i])));
  const at = state.order.indexOf(i);
  byId('previous').disabled = at <= 0;
  byId('next').disabled = at < 0 || at + 1 >= state.order.length;
  const place = make('div', {id: 'said'});
  inside.replaceChildren(verdict(r, i), facts(r, i), place);
  if (i >= r.texts) {
    place.append(make('p', {class: 'soft'}, r.texts
      ? 'Only the first ' + whole(r.texts) + ' texts are in this page (--texts).'
      : 'The text is not in this page: give --data, and --lexicon for its words.'));
    return;
  }
  try {
    const b = Math.floor(i / data.textsPerBlock), k = i % data.textsPerBlock;
    const texts = await block('texts-' + b);
    const slots = r.lexicon < 0 ? null : (await block('slots-' + r.lexicon + '-' + b))[k];
    const words = r.lexicon < 0 ? null : await block('words-' + r.lexicon);
    const attacks = await attacksOn(i);
    if (mine === openings) place.append(...said(r, i, texts[k], slots, words),
      ...attacks.map(attack => attacked(attack, texts[k])));
  } catch (error) {
    place.append(make('p', {}, 'The text cannot be unpacked by this browser (' + error.message + ').'));
  }
}

function said(r, i, stored, slots, words) {
  const cut = Array.isArray(stored), text = visible(cut ? stored[0] : stored);
  const line = make('p', {class: 'said', dir: 'auto', lang: ''}), parts = [];
  if (slots) {
    let at = 0;
    for (let s = 0; s < slots.length; s += 3) {
      const begin = at + slots[s], end = begin + slots[s + 1], number = slots[s + 2], unread = s / 3 >= r.visible[i];
      const level = hasVotes(r) ? levelOf(words.s[number]) : 0;
      line.append(text.slice(at, begin), make('span', {class: 'w o' + level + (unread ? ' unread' : ''), role: 'button',
        tabindex: s ? -1 : 0, 'data-word': number, 'data-unread': unread}, text.slice(begin, end)));
      at = end;
    }
    line.append(text.slice(at));
    parts.push(hasVotes(r) ? legend() : make('div', {class: 'legend'}, 'marked: words with synonyms'));
  } else {
    line.append(text);
  }
  parts.push(line);
  if (cut) parts.push(make('p', {class: 'soft'},
    'The text is longer: ' + whole(stored[1]) + ' bytes. The rest is not shown.'));
  if (!slots) return parts.concat(make('p', {class: 'soft'}, 'Its words are shown when the lexicon is given too.'));
  const panel = make('div', {id: 'word', role: 'status', 'aria-live': 'polite'},
    make('p', {class: 'soft'}, slots.length
      ? 'Point at a coloured word, or move with the arrow keys, to see what may stand in its place.'
      : 'No word of this text can change.'));
  const tell = event => { if (event.target.dataset.word) describe(r, event.target, words, panel); };
  for (const name of ['mouseover', 'focusin', 'click']) line.addEventListener(name, tell);
  line.addEventListener('keydown', moveWord);
  return parts.concat(panel);
}

/* What attacks made of a text of this run: [name, record]. */
async function attacksOn(i) {
  const found = [];
  for (let a = 0; byId('attacks-' + a); a++) {
    const attack = await block('attacks-' + a), record = attack.rows[i];
    if (record && attack.runs.includes(state.run))
      found.push([attack.name + (attack.smoothed ? ' on the smoothed classifier' : ' on the base model'), record]);
  }
  return found;
}

function attacked([name, [, outcome, after, changes]], stored) {
  const text = visible(Array.isArray(stored) ? stored[0] : stored),
    line = make('p', {class: 'said diff', dir: 'auto', lang: ''});
  const count = changes.length / 3, result = [['failed'],
    ['succeeded: ' + count + (count === 1 ? ' word' : ' words') + ' changed, and the answer is ',
      isolated(visible(after || 'none'))],
    ['was not tried: the answer was wrong already']][outcome];
  const section = make('section', {class: 'attack'}, make('h3', {}, 'Attack: ', isolated(visible(name))),
    make('p', {}, 'It ', ...result, '.'));
  if (!count) return section;
  let at = 0;
  for (let c = 0; c < changes.length; c += 3) {
    const begin = changes[c], end = begin + changes[c + 1];
    line.append(text.slice(at, begin), make('del', {}, text.slice(begin, end)), ' ',
      make('ins', {}, visible(changes[c + 2])));
    at = end;
  }
  line.append(text.slice(at));
  section.append(line);
  return section;
}

let asked = 0;
async function describe(r, element, words, panel) {
  const mine = ++asked, number = Number(element.dataset.word), b = Math.floor(number / data.wordsPerBlock);
  const detail = (await block('details-' + r.lexicon + '-' + b))[number % data.wordsPerBlock];
  if (mine !== asked) return;
  for (const old of dialog.querySelectorAll('.w.chosen')) old.classList.remove('chosen');
  element.classList.add('chosen');
  const [worst, synonymCount, synonyms, drawCount, draws, total, weights] = detail;
  const list = (ids, count, more) => ids.map((id, k) => visible(words.w[id]) + (more ? more(k) : '')).join(', ') +
    (count > ids.length ? ' and ' + whole(count - ids.length) + ' more' : '');
  const facts = make('dl', {}, make('dt', {}, 'synonyms'),
    make('dd', {}, isolated(synonymCount ? synonymCount + ': ' + list(synonyms, synonymCount) : 'none')));
  if (hasVotes(r)) facts.append(make('dt', {}, 'overlap'),
    make('dd', {}, 's = ' + myriads(words.s[number]) + (worst < 0 ? '' : ', with the worst synonym: '),
      worst < 0 ? '' : make('strong', {}, isolated(visible(words.w[worst])))),
    make('dt', {}, 'draws'), make('dd', {}, isolated('from ' + whole(drawCount) + ' words' +
      (weights ? ': ' : ', 1/' + drawCount + ' each: ') +
      list(draws, drawCount, weights ? k => ' ' + weights[k] + '/' + total : null))));
  panel.replaceChildren(make('strong', {}, isolated(visible(words.w[number]))),
    element.hasAttribute('data-unread') ? ' (the model never reads this far)' : '', facts);
}

/* ------------------------------------------------------------------ the margins */

const SVG = 'http://www.w3.org/2000/svg'; /* a name, not an address */
const AREA = {left: 54, top: 14, width: 414, height: 238}; /* as in src/report/plot.c */
const placeOf = (r, i) =>
  [AREA.left + Math.min(1, r.q[i] / 10000) * AREA.width, AREA.top + (1 - r.bound[i] / 10000) * AREA.height];

/* The text whose point is nearest; of many in one place, the next one at every click. */
function nearest(r, x, y) {
  let best = Infinity, found = [];
  for (let i = 0; i < r.id.length; i++) {
    const [px, py] = placeOf(r, i), distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < best - .3) { best = distance; found = [i]; }
    else if (distance < best + .3) found.push(i);
  }
  if (best > 400) return -1;
  return found[(found.indexOf(state.opened) + 1) % found.length];
}

/* Marks the text that is open, or that the arrow keys have reached. */
function choose(i) {
  for (const old of document.querySelectorAll('circle.chosen')) old.remove();
  const svg = document.querySelector('figure.margin[data-run="' + state.run + '"] svg.plot');
  if (i < 0 || !svg) return; /* a run without votes has none, nor one whose q is 0 */
  const circle = document.createElementNS(SVG, 'circle');
  const [x, y] = placeOf(run(), i);
  for (const [name, value] of Object.entries({class: 'chosen', cx: x, cy: y, r: 6})) circle.setAttribute(name, value);
  svg.append(circle);
}

function enliven(figure) {
  const number = Number(figure.dataset.run), svg = figure.querySelector('svg.plot'), r = data.runs[number];
  let order = null, at = -1;
  const openHere = i => { if (number !== state.run) chooseRun(number); open(i, () => svg.focus()); };
  figure.classList.add('live');
  svg.setAttribute('tabindex', '0');
  svg.setAttribute('role', 'application');
  figure.append(make('p', {class: 'soft'},
    'Click a point to open its text; with the keyboard, arrow keys move from point to point and Enter opens.'));
  svg.addEventListener('click', event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()),
      i = nearest(r, at.x, at.y);
    if (i >= 0) openHere(i);
  });
  svg.addEventListener('keydown', event => {
    if (event.key === 'Enter' && at >= 0) { event.preventDefault(); openHere(order[at]); return; }
    const step = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    if (number !== state.run) chooseRun(number);
    order = order || Array.from(r.id.keys()).sort((a, b) => r.q[a] - r.q[b] || r.bound[a] - r.bound[b]);
    at = at < 0 ? (step > 0 ? 0 : order.length - 1) : Math.max(0, Math.min(order.length - 1, at + step));
    choose(order[at]);
  });
}

/* ------------------------------------------------------------------ begin */

document.body.append(dialog);
for (const head of table.tHead.rows[0].cells) {
  const key = head.dataset.key;
  head.replaceChildren(make('button', {type: 'button', onclick: () => sortBy(key)}, key));
}
makeControls();
markSort();
table.classList.add('live');
frame.addEventListener('scroll', () => draw(false), {passive: true});
frame.addEventListener('keydown', onKey);
body.addEventListener('click', event => {
  const row = event.target.closest('tr[data-index]');
  if (!row) return;
  state.active = Number(row.dataset.at);
  open(Number(row.dataset.index), () => { draw(true); focusActive(); });
});
window.addEventListener('resize', () => draw(true));
window.addEventListener('beforeprint', drawForPaper);
window.addEventListener('afterprint', () => draw(true));
byId('shown').after(make('p', {id: 'printed'}));
document.querySelectorAll('figure.margin').forEach(enliven);
arrange();

function openFromAddress() {
  const found = /^#text=(\d+)\.(\d+)$/.exec(location.hash);
  if (!found) return;
  const number = Number(found[1]) - 1, i = Number(found[2]) - 1;
  if (!data.runs[number] || i < 0 || i >= data.runs[number].id.length) return;
  if (number !== state.run) chooseRun(number);
  open(i, () => moveTo(state.active));
}
window.addEventListener('hashchange', openFromAddress);
openFromAddress();
})();
