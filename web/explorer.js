/* The explorer: asks the server about a text, shows the certificate as it grows, and lets words
   be exchanged for their synonyms, to see whether the answer holds. What it shows, and what the server
   answers, is in docs/serve.md. */
(() => {
'use strict';
/* @include page.js */

let model = null;    /* what GET v1/model says */
let asked = null;    /* the text that was asked about: {text, words, lexicon, slots, terms} */
let changes = new Map(); /* number of a word of it -> what stands in its place */

/* ------------------------------------------------------------------ the server */

/* An error that is shown to the reader. */
class Trouble extends Error {}
const BROKEN = 'The connection broke before the certificate was finished.';

/* What an error of the server means for a reader. */
function wordsFor(fault, retry) {
  const message = visible(fault.message || '');
  switch (fault.code) {
  case 'unauthorized': return byId('token').value ? 'The server does not know this token.'
    : 'This server answers those who have its token. Type it below the text.';
  case 'too_large': return 'That is too long: ' + message + '.';
  case 'busy': return 'The server has too much to do. Try again' +
    (retry ? ' in ' + retry + (retry === '1' ? ' second.' : ' seconds.') : ' later.');
  case 'deadline': return 'The server did not finish in time. Shorter texts take less.';
  default: return 'The server could not answer: ' + (message || 'it did not say why') + '.';
  }
}

/* A response that is good; `body` makes it a POST. */
async function request(path, body, signal) {
  const headers = {}, token = byId('token').value;
  if (body) headers['Content-Type'] = 'application/json';
  if (/[^\x21-\x7e]/.test(token)) throw new Trouble('This cannot be a token: it has characters that a token never has.');
  if (token) headers.Authorization = 'Bearer ' + token;
  let response;
  try {
    response = await fetch(path, {method: body ? 'POST' : 'GET', headers, signal, body: body && JSON.stringify(body)});
  } catch (error) {
    throw signal && signal.aborted ? error : new Trouble('The server cannot be reached. Is it still running?');
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => null);
  if (response.status === 401) byId('token-part').hidden = false;
  throw new Trouble(wordsFor(answer && answer.error || {message: 'status ' + response.status},
    response.headers.get('Retry-After')));
}

/* The events of a stream: [name, data]. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read().catch(() => { throw new Trouble(BROKEN); });
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const lines = part.split('\n'),
        field = name => (lines.find(line => line.startsWith(name + ': ')) || '').slice(name.length + 2);
      if (field('event')) yield [field('event'), JSON.parse(field('data'))];
    }
  }
}

function tellTrouble(words) {
  byId('trouble').textContent = words;
  byId('trouble').hidden = !words;
}

const tellFailure = error =>
  tellTrouble(error instanceof Trouble ? error.message : 'This page failed: ' + error.message);

/* ------------------------------------------------------------------ the picture */

const AREA = {left: 54, top: 10, width: 414, height: 170};
const atX = (n, most) =>
  AREA.left + AREA.width * Math.min(1, Math.log10(Math.max(1, n)) / Math.log10(Math.max(10, most)));
const atY = share => AREA.top + (1 - share) * AREA.height;
const percent = share => (stepsDown(share, 1000) / 10).toFixed(1) + '%';

function draw(svg, tag, attributes, words) {
  const element = document.createElementNS(svg.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (words) element.textContent = words;
  svg.append(element);
  return element;
}

const line = (svg, name, x1, y1, x2, y2) =>
  draw(svg, 'path', {class: name, d: 'M' + x1 + ' ' + y1 + 'L' + x2 + ' ' + y2});

/* Lines that the bound has to get above, highest first, with the radii, or the edits, that each is for. */
function thresholds(start) {
  const found = [];
  (start.q_edits || []).slice(1).forEach((q, i) => { if (q < .5) found.unshift({q, edits: i + 1}); });
  const edits = found.splice(0);
  start.q_at.forEach((q, r) => {
    const radius = model ? model.radii[r] : [1, 2, 5, 10, 20, 'all'][r];
    if (found.length && found[0].q === q) found[0].last = radius;
    else if (q < .5) found.unshift({q, first: radius, last: radius});
  });
  return found.concat(edits).sort((a, b) => b.q - a.q);
}

/* The bound on the vote against the number of draws, on a logarithmic scale. */
class Picture {
  constructor(svg) { this.svg = svg; }

  begin(start) {
    const svg = this.svg, right = AREA.left + AREA.width, bottom = AREA.top + AREA.height;
    this.most = start.n;
    this.bounds = [];
    this.shares = [];
    svg.replaceChildren();
    for (const share of [0, .25, .5, .75, 1]) {
      line(svg, share ? 'grid' : 'axis', AREA.left, atY(share), right, atY(share));
      draw(svg, 'text', {class: 'end', x: AREA.left - 6, y: atY(share) + 4.5}, 100 * share + '%');
    }
    for (let n = 1; n <= this.most; n *= 10)
      draw(svg, 'text', {class: 'mid', x: atX(n, this.most), y: bottom + 18}, whole(n));
    draw(svg, 'text', {class: 'mid', x: AREA.left + AREA.width / 2, y: bottom + 38}, 'draws');
    this.drawThresholds(start, right);
    this.share = draw(svg, 'path', {class: 'share'});
    this.bound = draw(svg, 'path', {class: 'curve r0'});
    this.dot = draw(svg, 'circle', {class: 'dot', r: 0});
    draw(svg, 'path', {class: 'curve r0', d: 'M' + AREA.left + ' ' + (bottom + 33) + 'h18'});
    draw(svg, 'text', {x: AREA.left + 24, y: bottom + 38}, 'bound');
    draw(svg, 'path', {class: 'share', d: 'M' + (right - 128) + ' ' + (bottom + 33) + 'h18'});
    draw(svg, 'text', {x: right - 104, y: bottom + 38}, 'share of votes');
  }

  drawThresholds(start, right) {
    let above = -Infinity; /* where the last name stands */
    for (const {q, first, last, edits} of thresholds(start)) {
      const y = atY(.5 + q), over = y - 4, name = y - AREA.top < 16 || over - above < 17 ? y + 14 : over;
      line(this.svg, 'limit', AREA.left, y, right, y);
      if (name - above < 17) continue; /* it would stand on the other */
      above = name;
      const words = edits ? whole(edits) + (edits === 1 ? ' edit' : ' edits') : last === 'all' ? 'any words'
        : last === 1 ? '1 word' : (first === last ? '' : first + ' to ') + last + ' words';
      draw(this.svg, 'text', {class: 'value end', x: right - 4, y: name}, words + (edits ? '' : ' may change'));
    }
  }

  add(n, bound, share) {
    const path = points =>
      'M' + points.map(([x, y]) => atX(x, this.most).toFixed(1) + ' ' + atY(y).toFixed(1)).join('L');
    if (share != null) this.share.setAttribute('d', path(this.shares = this.shares.concat([[n, share]])));
    if (bound == null) return;
    this.bound.setAttribute('d', path(this.bounds = this.bounds.concat([[n, bound]])));
    for (const [name, value] of Object.entries({cx: atX(n, this.most), cy: atY(bound), r: 4}))
      this.dot.setAttribute(name, value);
  }
}

/* ------------------------------------------------------------------ a side */

/* One text and what the server says of it. */
class Side {
  constructor(id, more) {
    this.root = byId(id);
    this.more = more || {}; /* what its requests have beside text and terms */
    this.picture = new Picture(this.root.querySelector('svg'));
  }

  part(name) { return this.root.querySelector('.' + name); }

  clear() {
    if (this.controller) this.controller.abort(); /* the server then stops working for it */
    this.controller = null;
    this.result = this.start = null;
    this.groups = []; /* their votes, where groups vote */
    this.part('groups').hidden = true;
    this.part('answer').replaceChildren();
    this.part('votes').replaceChildren();
    this.picture.svg.replaceChildren();
    this.judge('', '', '');
  }

  judge(kind, head, words) {
    this.part('verdict').className = 'verdict ' + kind;
    this.part('verdict').replaceChildren(make('strong', {}, head), ' ', ...[].concat(words));
  }

  /* Whether it was answered; not when another question took its place. */
  async ask(text) {
    this.clear();
    const controller = this.controller = new AbortController();
    this.judge('', 'Asking.', '');
    try {
      for await (const [event, data] of events(await request('v1/certify/stream',
        {text, ...asked.terms, ...this.more}, controller.signal)))
        this.hear(event, data);
      if (!this.result) throw new Trouble(BROKEN);
      return true;
    } catch (error) {
      if (controller.signal.aborted) return false;
      this.judge('bad', 'No certificate.', '');
      throw error;
    }
  }

  hear(event, data) {
    if (event === 'start') {
      this.start = data;
      if (!model.groups) this.picture.begin(data);
      this.judge('', model.groups ? 'Asking the groups.' : 'Drawing.', '');
    } else if (event === 'groups') {
      this.groups.push(...data.votes);
    } else if (event === 'prediction') {
      this.showAnswer(data.label, data.leading, whole(data.vote.n) + ' draws to choose it');
      this.showVotes(data.vote.counts);
    } else if (event === 'progress') {
      if (model.groups) this.judge('', whole(data.n) + (data.n === 1 ? ' group' : ' groups') + ' asked.', '');
      else this.showProgress(data);
    } else if (event === 'result') {
      this.result = data;
      this.showResult(data.answer, data.certificate);
    } else if (event === 'error') {
      throw new Trouble(wordsFor(data.error));
    }
  }

  showAnswer(label, leading, more) {
    this.part('answer').replaceChildren(label === null ? 'no clear answer' : isolated(visible(label)), ' ',
      make('span', {}, label === null ? make('span', {}, isolated(visible(leading)), ' leads; ') : '', more));
  }

  /* The classes with the most votes; counts or shares. */
  showVotes(votes, say = (n, total) => percent(n / total)) {
    const total = Object.values(votes).reduce((sum, n) => sum + n, 0) || 1;
    const rows = Object.entries(votes).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([label, n]) => {
      const filled = make('div', {class: 'filled'});
      filled.style.width = 100 * n / total + '%';
      return make('div', {class: 'vote'}, isolated(visible(label)), make('div', {class: 'track'}, filled),
        make('output', {}, say(n, total)));
    });
    this.part('votes').replaceChildren(...rows);
  }

  showProgress(data) {
    const share = data.counts && data.n ? data.counts[data.target] / data.n : null;
    if (data.counts) this.showVotes(data.counts);
    this.picture.add(data.n, data.bound, share);
    this.judge(data.claim && data.radius ? 'good' : '', whole(data.n) + (data.n === 1 ? ' draw.' : ' draws.'),
      !data.claim ? 'The certificate comes at the end.'
        : data.radius ? ['So far: ', ...this.promise(data.radius, data.target)] : 'So far nothing is certified.');
  }

  promise(radius, label) {
    return [radius === 'all' ? 'whatever words are exchanged for synonyms'
      : 'with up to ' + whole(radius) + (radius === 1 ? ' word' : ' words') + ' exchanged',
      ', the answer stays ', isolated(visible(label)), '.'];
  }

  /* Interval bounds look into the model: no draws, no votes. */
  showBounds(answer) {
    this.showAnswer(answer.label, answer.leading, 'by the model itself');
    if (answer.radius) this.judge(answer.certified ? 'good' : 'weak', answer.certified ? 'Certified:' : 'Certified in part:',
      [...this.promise(answer.radius, answer.label), ' This is exact: interval bounds need no draws.']);
    else this.judge('weak', 'Not certified.', 'The interval bounds do not prove that no exchange changes the answer.');
  }

  /* Every group has one vote. */
  showGroupVote(answer, certificate) {
    const votes = Object.fromEntries(Object.entries(certificate.weights).map(([label, n]) => [label, Number(n)]));
    const target = certificate.target, total = Number(certificate.total),
      lead = votes[target] - Math.max(...Object.keys(votes).map(label => label === target ? -total : votes[label]));
    this.showAnswer(answer.label, answer.leading, whole(votes[target]) + ' of ' + whole(total) + (total === 1 ? ' group' : ' groups'));
    this.showVotes(votes, n => whole(n));
    this.showGroups(answer.leading, lead);
    const next = answer.edits + 1;
    if (answer.abstained) this.judge('weak', 'Not certified.', 'Another class has as many votes.');
    else this.judge(answer.certified ? 'good' : 'weak', answer.certified ? 'Certified:' : 'Certified in part:',
      [...this.promise(answer.radius, answer.label), editsOf(answer), answer.certified ? '' : ' The lead is ' + votesOf(lead) + '; ' +
        whole(next) + (next === 1 ? ' edit needs' : ' edits need') + ' more than ' + whole(next * PER_EDIT[model.edit_kind]) + '.',
      ' This is exact: all groups were asked' + (answer.assumes ? ', if ' + answer.assumes.join(' and ') : '') + '. ' +
        whole(answer.queries) + (answer.queries === 1 ? ' query.' : ' queries.')]);
  }

  showGroups(leading, lead) {
    const rows = this.groups.sort((a, b) => !a.text - !b.text || a.group - b.group).slice(0, GROUPS), left = this.groups.length - rows.length;
    const part = this.part('groups');
    part.replaceChildren(make('summary', {}, 'What each group reads, and its vote'),
      make('p', {class: 'soft'}, lead > 0 ? withstands(lead) : 'No class leads.'),
      make('ul', {}, ...rows.map(row => groupRow(row, leading))),
      left ? make('p', {class: 'soft'}, 'And ' + whole(left) + (left === 1 ? ' more group.' : ' more groups.')) : '');
    part.hidden = false;
  }

  showResult(answer, certificate) {
    if (certificate.margins) { this.showBounds(answer); return; }
    if (model.groups) { this.showGroupVote(answer, certificate); return; }
    const draws = answer.exact ? 'of all draws' : 'of ' + whole(certificate.n) + ' draws', q = this.start.q_at.at(-1);
    this.showAnswer(answer.label, answer.leading, percent(answer.confidence) + ' ' + draws);
    this.showVotes(answer.shares);
    this.picture.add(answer.exact ? this.start.n : certificate.n, answer.bound,
      answer.exact ? null : answer.confidence);
    const end = (answer.exact ? ' This is exact: all draws were asked' +
        (answer.assumes ? ', if ' + answer.assumes.join(' and ') + '. ' : '. ')
      : ' The chance that a text that could be attacked gets a certificate is at most ' + this.start.delta +
        '; it is not the chance that a given certificate is wrong. ') + whole(answer.queries) + ' queries.';
    if (answer.abstained) this.judge('weak', 'Not certified.', 'The vote is not clear enough for an answer.');
    else if (answer.radius)
      this.judge(answer.certified ? 'good' : 'weak', answer.certified ? 'Certified:' : 'Certified in part:',
        [...this.promise(answer.radius, answer.label), editsOf(answer), editsMissing(answer, certificate), end]);
    else this.judge('weak', 'Not certified.',
      ['It is not proven that no exchange changes the answer ', isolated(visible(answer.label)),
        '. Bound ' + myriads(stepsDown(answer.bound, 10000)) + '; more than ' +
          myriads(5000 + stepsUp(this.start.q_at[0], 10000)) +
          ' is needed for one word' + (q < .5 ? '' : ', and no bound is enough for all') + '.']);
  }
}

/* ------------------------------------------------------------------ edits and groups */

/* What a server with --delete or --groups certifies beside synonyms. */
const KINDS = {any: 'put in, taken out or replaced', replace: 'replaced', insert: 'put in', delete: 'taken out'};
function editsOf(answer) {
  if (!answer.edits || !model || !model.edit_kind) return '';
  return ' So it does with up to ' + whole(answer.edits) + (answer.edits === 1 ? ' word, number or mark '
    : ' words, numbers or marks ') + KINDS[model.edit_kind] + '.';
}

/* What the next edit would need, where fewer are certified than the server was asked for. */
function editsMissing(answer, certificate) {
  const next = (answer.edits || 0) + 1, q = certificate.q_edits && certificate.q_edits[next];
  if (!model.edit_kind || next > model.edits || q == null) return '';
  return ' For ' + whole(next) + (next === 1 ? ' edit ' : ' edits ') + (q < .5 ? 'the bound, ' +
    myriads(stepsDown(answer.bound, 10000)) + ', would have to be above ' + myriads(5000 + stepsUp(q, 10000)) + '.'
    : 'no bound is enough.');
}

/* Votes that a lead must exceed for so many edits (docs/groups.md), and the most edits that one allows. */
const PER_EDIT = {any: 4, replace: 4, insert: 2, delete: 2};
const withstood = (lead, kind) => Math.min(64, Math.max(0, Math.ceil(lead / PER_EDIT[kind]) - 1));
const votesOf = n => whole(n) + (n === 1 ? ' vote' : ' votes');

/* How many edits of each kind a lead allows, as words. */
function withstands(lead) {
  const any = withstood(lead, 'any'), one = withstood(lead, 'insert');
  const tokens = n => whole(n) + (n === 1 ? ' word, number or mark' : ' words, numbers or marks');
  return 'A lead of ' + votesOf(lead) + ' withstands ' + (one ? (any ? tokens(any) + ' ' + KINDS.any + ', or ' : '') +
    (any ? whole(one) + ' that are only put in, or only taken out' : tokens(one) + ' put in, or taken out; none replaced')
    : 'no edit, only synonyms') + '.';
}

/* Colours the words of your text by the votes of their groups. */
function colourGroups() {
  const leading = original.result && original.result.answer.leading, votes = new Map(original.groups.map(v => [v.group, v.label]));
  if (!leading || !asked.tokens) return;
  for (const element of byId('words').querySelectorAll('[data-group]')) {
    const label = votes.get(Number(element.dataset.group));
    element.classList.add(label === leading ? 'for' : label === null ? 'none' : 'against');
  }
  byId('words').querySelector('.legend').replaceChildren(make('span', {}, 'Words, numbers and marks of groups that vote for ',
    make('span', {class: 't for'}, isolated(visible(leading))), ', for ', make('span', {class: 't against'}, 'another class'),
    original.groups.some(vote => vote.label === null) ? make('span', {}, ', for ', make('span', {class: 't none'}, 'none')) : '',
    '; those in bold have synonyms.'));
}

/* Shows which words are in a group, until it is asked again. */
function light(group, button) {
  const on = button.getAttribute('aria-pressed') === 'false';
  for (const other of document.querySelectorAll('.groups button')) other.setAttribute('aria-pressed', String(on && other === button));
  for (const element of byId('words').querySelectorAll('[data-group]'))
    element.classList.toggle('lit', on && Number(element.dataset.group) === group);
}

const GROUPS = 100; /* that are listed */

/* One group in the list: what it reads, and its vote. */
function groupRow({group, count, label, text}, leading) {
  const name = text ? make('button', {type: 'button', class: 'press', 'aria-pressed': 'false',
    onclick: event => light(group, event.currentTarget)}, 'group ' + group)
    : make('span', {class: 'soft'}, whole(count) + (count === 1 ? ' group' : ' groups') + ' without words');
  return make('li', {}, name, make('span', {class: 't ' + (label === leading ? 'for' : label === null ? 'none' : 'against')},
    label === null ? 'no class' : isolated(visible(label))), make('span', {class: 'read', dir: 'auto', lang: ''}, visible(text)));
}

const isRemote = () => model && ['exec', 'http', 'callback'].includes(model.model.arch);
const original = new Side('original'), changed = new Side('changed'), second = new Side('second', {model: 'second'});

/* ------------------------------------------------------------------ words and synonyms */

/* A synonym written as the word is. */
function dressed(synonym, pattern) {
  const [first, ...rest] = synonym;
  return pattern === 'upper' ? synonym.toUpperCase()
    : pattern === 'title' ? first.toUpperCase() + rest.join('') : synonym;
}

/* The text in pieces: each(piece, word or null, number, group). Where groups vote, numbers and marks are pieces too. */
function walk(each) {
  let at = 0, next = 0;
  for (const {utf16, group} of asked.tokens || asked.words) {
    const word = asked.words[next], same = word && String(word.utf16) === String(utf16);
    each(asked.text.slice(at, utf16[0]), null, -1);
    each(asked.text.slice(...utf16), same ? word : null, same ? next++ : -1, group);
    at = utf16[1];
  }
  each(asked.text.slice(at), null, -1);
}

function changedText() {
  let text = '';
  walk((piece, word, number) => { text += changes.has(number) ? dressed(changes.get(number), word.pattern) : piece; });
  return text;
}

function showWords() {
  const said = make('p', {class: 'said', dir: 'auto', lang: ''});
  let first = true;
  walk((piece, word, number, group) => {
    if (!word || word.slot === null) {
      said.append(group == null ? visible(piece) : make('span', {class: 't', 'data-group': group}, visible(piece)));
      return;
    }
    const unread = original.start && word.slot >= original.start.visible;
    const level = levelOf(Math.floor(word.overlap * 10000));
    said.append(make('span', {class: 'w ' + (group == null ? 'o' + level : 't') + (unread ? ' unread' : ''), role: 'button',
      tabindex: first ? 0 : -1, 'data-word': number, 'data-group': group}, visible(piece)));
    first = false;
  });
  said.addEventListener('click', event => { if (event.target.dataset.word) showSynonyms(event.target); });
  said.addEventListener('keydown', event => {
    if ((event.key === 'Enter' || event.key === ' ') && event.target.dataset.word) {
      event.preventDefault();
      showSynonyms(event.target);
      byId('synonyms').querySelector('[aria-pressed=true]').focus();
    } else moveWord(event);
  });
  const panel = make('div', {id: 'word'}, make('p', {class: 'soft'}, asked.slots
    ? 'Choose a ' + (asked.tokens ? 'bold' : 'coloured') + ' word, by click or with arrow keys and Enter, and put a synonym in its place.'
    : 'No word of this text has synonyms.'));
  byId('words').replaceChildren(asked.tokens ? make('div', {class: 'legend'}) : legend(), said, panel);
}

function showSynonyms(element) {
  const number = Number(element.dataset.word), word = asked.words[number], entry = asked.lexicon[word.key];
  for (const old of byId('words').querySelectorAll('.w.chosen')) old.classList.remove('chosen');
  element.classList.add('chosen');
  const list = make('ul', {id: 'synonyms', 'aria-label': 'What may stand there'});
  const option = (name, note) => {
    const pressed = String(name === (changes.get(number) || word.key));
    list.append(make('li', {}, make('button', {type: 'button', class: 'press', 'aria-pressed': pressed,
      onclick: event => choose(number, name, list, event.currentTarget)},
    isolated(visible(name)), make('small', {}, ' ' + note))));
  };
  option(word.key, 'as it was');
  for (const synonym of entry.synonyms)
    option(synonym.word, asked.tokens ? 'same group'
      : 's = ' + myriads(stepsDown(synonym.overlap, 10000)) + (synonym.word === entry.worst ? ', worst' : ''));
  list.addEventListener('keydown', event => { if (event.key === 'Escape') element.focus(); });
  const draws = entry.draws.slice(0, 40).map(drawn => drawn.word).join(', ') +
    (entry.draw_count > 40 ? ' and ' + whole(entry.draw_count - 40) + ' more' : '');
  const more = entry.synonym_count > entry.synonyms.length
    ? '; ' + whole(entry.synonym_count) + ' synonyms, of which the first:' : '';
  byId('word').replaceChildren(make('strong', {}, isolated(visible(word.key))),
    make('span', {class: 'soft'}, (asked.tokens ? ' is in group ' + element.dataset.group
      : ' overlap s = ' + myriads(stepsDown(entry.overlap, 10000))) + more), list,
    make('p', {class: 'soft'}, asked.tokens ? 'which reads it, and each of these, as ' : 'drawn from ' + whole(entry.draw_count) +
      (entry.draw_count === 1 ? ' word: ' : ' words: '), isolated(visible(draws))));
}

function choose(number, name, list, button) {
  for (const other of list.querySelectorAll('button')) other.setAttribute('aria-pressed', String(other === button));
  if (name === asked.words[number].key) changes.delete(number);
  else changes.set(number, name);
  askChanged();
}

/* Puts into every word that may change what pick() says of its entry. */
function changeAll(pick) {
  changes = new Map();
  asked.words.forEach((word, number) => {
    const name = word.slot === null ? null : pick(asked.lexicon[word.key]);
    if (name) changes.set(number, name);
  });
  byId('word').replaceChildren();
  askChanged();
}

function showChanged() {
  for (const element of byId('words').querySelectorAll('.w'))
    element.classList.toggle('exchanged', changes.has(Number(element.dataset.word)));
  const line = byId('changed-text');
  line.replaceChildren();
  walk((piece, word, number) => line.append(changes.has(number)
    ? make('ins', {title: 'was: ' + visible(piece)}, visible(dressed(changes.get(number), word.pattern)))
    : visible(piece)));
  byId('back').disabled = !changes.size;
  byId('worst').disabled = byId('random').disabled = !asked.slots;
}

/* ------------------------------------------------------------------ folds */

/* A character as it is looked up: U+0430. */
const codeOf = c => 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
const codes = piece => [...piece].slice(0, 4).map(codeOf).join(' ') + ([...piece].length > 4 ? ' \u2026' : '');
const FOLDS = 20; /* kinds of places that are listed */

/* What the server's lexicon makes of the text, where it has a fold. */
function showFold(text, fold) {
  const part = byId('folded');
  part.hidden = !fold;
  part.replaceChildren();
  if (!fold) return;
  const kinds = new Map(), holds = 'The answer, and all that is certified, holds for every text that folds to this one.';
  for (const {utf16, to} of fold.places) {
    const key = JSON.stringify([text.slice(...utf16), to]);
    kinds.set(key, (kinds.get(key) || 0) + 1);
  }
  part.append(make('h3', {}, 'What is read'), make('p', {class: 'soft'}, fold.place_count
    ? whole(fold.place_count) + (fold.place_count === 1 ? ' place was' : ' places were') + ' folded. ' + holds
    : 'Nothing in this text is changed by the fold. ' + holds));
  if (!fold.place_count) return;
  part.append(make('p', {class: 'said', dir: 'auto', lang: ''}, visible(fold.text)));
  const list = make('ul', {class: 'folds', 'aria-label': 'Characters that were folded'});
  for (const [key, count] of [...kinds].slice(0, FOLDS)) {
    const [from, to] = JSON.parse(key);
    list.append(make('li', {}, isolated(visible(from)), ' (' + codes(from) + ') ', to ? 'became ' : 'was left out',
      to ? isolated(visible(to)) : '', count > 1 ? ', ' + whole(count) + ' times' : ''));
  }
  part.append(list);
  if (kinds.size > FOLDS || fold.place_count > fold.places.length) part.append(make('p', {class: 'soft'}, 'And others.'));
  part.append(make('p', {class: 'soft'}, 'Steps of the fold: ' + fold.steps.replaceAll(',', ', ') + '; Unicode ' + fold.unicode + '.'));
}

/* ------------------------------------------------------------------ does it hold? */

/* [kind, words] about both texts, once both are answered. */
function comparison() {
  const count = changes.size, before = original.result.answer, after = changed.result.answer;
  const covered = !before.abstained && (before.radius === 'all' || before.radius >= count);
  const words = whole(count) + (count === 1 ? ' word' : ' words') + ' of ' + whole(asked.slots) + ' changed. ';
  if (before.label !== null && before.label === after.label)
    return ['good', words + 'The answer holds' +
      (covered ? ', as it was certified.' : ', though that was not certified.')];
  if (before.label === null || after.label === null)
    return ['weak', words + 'For one of the texts the vote is not clear' +
      (covered ? '; it is certified that the same class wins.' : '.')];
  return ['bad', words + (covered
    ? 'The answer changed, although it was certified: either the text received a certificate although it ' +
      'could be attacked, or the vote misleads. Both are rare.'
    : 'The answer changed. It was not certified that it would not.')];
}

function compare() {
  const ready = changes.size && original.result && changed.result, [kind, words] = ready ? comparison() : ['', ''];
  byId('compare').className = 'verdict ' + kind;
  byId('compare').textContent = words;
  byId('compare').hidden = !ready;
}

async function askChanged() {
  tellTrouble('');
  showChanged();
  changed.clear();
  compare();
  if (!changes.size) {
    changed.judge('', 'Nothing is changed.',
      'Choose a word of your text and put a synonym in its place, or change all of them at once.');
    return;
  }
  try {
    if (await changed.ask(changedText())) compare();
  } catch (error) {
    tellFailure(error);
  }
}

/* ------------------------------------------------------------------ two models */

/* What a model says of the text, in a few words. */
function claimOf({answer}) {
  if (answer.label === null) return ['no clear answer'];
  return [isolated(visible(answer.label)), answer.radius === 'all' ? ', certified whatever words are exchanged'
    : answer.radius ? ', certified for up to ' + whole(answer.radius) + (answer.radius === 1 ? ' word' : ' words')
      : ', not certified', answer.edits ? ' and with up to ' + whole(answer.edits) + (answer.edits === 1 ? ' edit' : ' edits') : ''];
}

function compareModels() {
  const ready = model && model.second && original.result && second.result;
  byId('models').hidden = !ready;
  if (!ready) return;
  const same = original.result.answer.label === second.result.answer.label;
  byId('models').className = 'verdict ' + (same ? 'good' : 'weak');
  byId('models').replaceChildren(make('strong', {}, same ? 'Both models answer alike.' : 'The models differ.'),
    ' First: ', ...claimOf(original.result), '. Second: ', ...claimOf(second.result), '.');
}

/* The second model is asked about the text as it was typed; its troubles are its own. */
async function askSecond(text) {
  second.clear();
  compareModels();
  if (!model.second) return;
  try {
    if (await second.ask(text)) compareModels();
  } catch (error) {
    second.judge('bad', 'No certificate.', error instanceof Trouble ? error.message : 'This page failed: ' + error.message);
  }
}

/* ------------------------------------------------------------------ terms */

const TERMS = {
  radius: words => words === 'all' ? 'all' : /^[1-9]\d{0,8}$/.test(words) ? Number(words) : null,
  delta: words => Number(words) > 0 && Number(words) <= model.delta ? Number(words) : null,
  n: words => /^[1-9]\d*$/.test(words) && Number(words) <= model.n ? Number(words) : null,
};

/* What is typed there, as members of a request; empty fields leave the server's. */
function readTerms() {
  const terms = {};
  for (const [name, read] of Object.entries(TERMS)) {
    const words = byId(name).value.trim(), value = words ? read(words) : undefined;
    byId(name).setAttribute('aria-invalid', String(value === null));
    if (value === null) {
      byId('terms').open = true;
      byId(name).focus();
      throw new Trouble({radius: 'Words that may change: a whole number from 1 on, or all.',
        delta: 'delta: a number above 0, at most ' + model.delta + ', the server\'s.',
        n: 'Draws: a whole number from 1 to ' + whole(model.n) + ', the server\'s.'}[name]);
    }
    if (value !== undefined) terms[name] = value;
  }
  return terms;
}

const drawsNothing = () => model.method === 'ibp' || model.method === 'groups';

function showTerms() {
  byId('radius').placeholder = String(model.radius);
  byId('delta').placeholder = String(model.delta);
  byId('n').placeholder = String(model.n);
  byId('delta-part').querySelector('.most').textContent = String(model.delta);
  byId('n-part').querySelector('.most').textContent = whole(model.n);
  byId('delta-part').hidden = byId('n-part').hidden = drawsNothing();
  byId('terms').querySelector('summary').textContent = drawsNothing() ? 'Radius' : 'Radius, delta and draws';
}

/* ------------------------------------------------------------------ examples, links, files */

const EXAMPLES = [
  'This was a wonderful film with a clever plot. The actors are great, and I would gladly watch it again.',
  'The battery died after two days, and the seller never answered. A terrible purchase; I want my money back.',
  'The room was small but clean, the staff friendly. Breakfast was poor. For the price it was a fair deal.',
];
let example = 0;

function showExample() {
  byId('text').value = EXAMPLES[example++ % EXAMPLES.length];
  showSize();
  byId('text').focus();
}

/* A link holds the text behind its #, which browsers do not send to servers. */
const linkTo = (text, terms) => location.href.split('#')[0] + '#' +
  Object.entries({text, ...terms}).map(([name, value]) => name + '=' + encodeURIComponent(value)).join('&');

async function share() {
  const link = linkTo(asked.text, asked.terms);
  history.replaceState(null, '', link);
  const copied = await (navigator.clipboard ? navigator.clipboard.writeText(link).then(() => true, () => false) : false);
  byId('kept').textContent = copied ? 'The link is copied.' : 'The link is in the address bar.';
}

/* What the server said of the text, and of the changed one, with what it says of itself. */
function save() {
  const side = ({result, groups}, text) => result ? {text, ...result, ...model.groups && {groups}} : null;
  const content = JSON.stringify({model, terms: asked.terms, original: side(original, asked.text),
    second: side(second, asked.text), changed: changes.size ? side(changed, changedText()) : null}, null, 1) + '\n';
  const address = URL.createObjectURL(new Blob([content], {type: 'application/json'}));
  make('a', {href: address, download: 'certificate.json'}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  byId('kept').textContent = 'Saved as certificate.json.';
}

function openLink() {
  const found = {};
  try {
    for (const part of location.hash.slice(1).split('&')) {
      const [name, value] = part.split('=');
      if (value) found[name] = decodeURIComponent(value);
    }
  } catch (error) { return; /* no link of this page */ }
  if (!found.text) return;
  byId('text').value = found.text;
  for (const name of Object.keys(TERMS)) byId(name).value = found[name] || '';
  byId('terms').open = Object.keys(TERMS).some(name => found[name]);
  showSize();
  byId('ask').requestSubmit();
}

/* ------------------------------------------------------------------ the form */

async function ask(event) {
  event.preventDefault();
  const typed = byId('text').value, text = typed.toWellFormed ? typed.toWellFormed() : typed;
  tellTrouble('');
  asked = null;
  changes = new Map();
  original.clear();
  changed.clear();
  second.clear();
  byId('models').hidden = byId('compare').hidden = byId('sides').hidden = byId('keep').hidden = true;
  byId('kept').textContent = '';
  const mine = ask.last = {};
  try {
    if (!model) await readModel();
    const terms = readTerms(), words = await (await request('v1/words', {text})).json();
    if (ask.last !== mine) return;
    asked = {text, terms, words: words.words, tokens: words.tokens, lexicon: words.lexicon, slots: words.slots};
    byId('sides').hidden = false;
    showFold(text, words.fold);
    showWords();
    askChanged();
    askSecond(text);
    if (await original.ask(text)) {
      if (original.start && original.start.visible < asked.slots) showWords(); /* some are never read */
      colourGroups();
      showChanged();
      compare();
      compareModels();
      byId('keep').hidden = false;
    }
  } catch (error) {
    if (ask.last === mine) tellFailure(error);
  }
}

function showSize() {
  const bytes = new TextEncoder().encode(byId('text').value).length, most = model ? model.limits.text : Infinity;
  byId('size').textContent = bytes ? whole(bytes) + (model ? ' of ' + whole(most) : '') + ' bytes'
    : 'Ctrl+Enter asks, too';
  byId('size').className = bytes > most ? 'over' : 'soft';
}

/* What the server does, in a few words. */
function methodWords() {
  const upTo = model.edit_kind && 'up to ' + whole(model.edits) + (model.edits === 1 ? ' edit is' : ' edits are') + ' certified.';
  if (model.method === 'ibp') return 'Method: interval bounds on the model itself.';
  if (model.groups) return 'Method: votes of ' + whole(model.groups) + (model.groups === 1 ? ' group; ' : ' groups; ') + upTo;
  return 'Method: ' + model.method + ', at most ' + whole(model.n) + (model.n === 1 ? ' draw' : ' draws') + ', delta ' + model.delta + '.' +
    (!model.edit_kind ? '' : ' Draws delete words' + (typeof model.delete === 'number' ? ' with chance ' + model.delete.toFixed(3)
      : ' by the length of the text (' + model.delete + ')') + '; ' + upTo);
}

const ABOUT = {
  ibp: 'The model answers, and interval bounds prove how much it leads whatever words of your text are exchanged for their synonyms.',
  groups: 'The classifier answers by a vote: every word, number and mark of your text is in one of so many groups, ' +
    'the model reads each group alone, and the groups vote. Synonyms are in the same group. A certificate says how much ' +
    'anybody may change without changing the answer.',
};

async function readModel() {
  model = await (await request('v1/model')).json();
  byId('model').textContent = 'Model: ' + model.model.arch + '. Classes: ' +
    visible(model.labels.join(', ')).slice(0, 200) + '. Kernel: ' + model.lexicon.kernel + ', ' +
    whole(model.lexicon.words) + ' words. ' + methodWords() +
    (model.second ? ' Second model: ' + model.second.arch + ', ' + visible(model.second.name).slice(0, 100) + '.' : '');
  if (ABOUT[model.method]) byId('about').textContent = ABOUT[model.method];
  for (const plot of document.querySelectorAll('svg.plot')) plot.toggleAttribute('hidden', drawsNothing());
  byId('second').hidden = !model.second;
  byId('sides').classList.toggle('three', Boolean(model.second));
  showTerms();
  showSize();
}

byId('ask').addEventListener('submit', ask);
byId('text').addEventListener('input', showSize);
byId('text').addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) byId('ask').requestSubmit();
});
byId('worst').addEventListener('click', () => changeAll(entry => entry.worst));
byId('random').addEventListener('click', () => changeAll(({synonyms}) =>
  synonyms.length ? synonyms[Math.floor(Math.random() * synonyms.length)].word : null));
byId('back').addEventListener('click', () => changeAll(() => null));
byId('example').addEventListener('click', showExample);
byId('share').addEventListener('click', share);
byId('export').addEventListener('click', save);
window.addEventListener('hashchange', openLink);
showSize();
readModel().then(openLink, tellFailure);
})();
