/* The explorer of servers that test_browser.py started: `plain` (short texts only), `slow` (a
 * program that takes its time), `hostile` (labels that try to break the page),
 * `bounds` (--method ibp), `token`, `second` (two models), `kept` (--delete keep:K), `groups` (--groups). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as web from './browser.mjs';
import { accessible, brightness, facts, shot } from './browser.mjs';

const servers = facts.servers;

async function visit(name, options = {}) {
  const page = await web.visit(servers[name].url, options);
  page.home = servers[name].url;
  if (name !== 'token') await page.waitForFunction(() => document.getElementById('model').textContent);
  return page;
}

const leave = (page, refused) => web.leave(page, page.home, refused);
const verdict = (page, side) => page.textContent(`#${side} .verdict`);
const trouble = async (page, words) => {
  await page.waitForFunction(words => document.getElementById('trouble').textContent.includes(words), words);
  assert.ok(await page.isVisible('#trouble'));
};
const finished = (page, side) => page.waitForFunction(side => /^(Certified|Not certified)/.test(document.querySelector(`#${side} .verdict`).textContent), side);
async function ask(page, text) {
  await page.fill('#text', text);
  await page.click('button.main');
}
async function certify(page, text = facts.explorer.text) {
  await ask(page, text);
  await finished(page, 'original');
}
const chooseWord = (page, number) => page.click(`#words .w[data-word] >> nth=${number}`);
const compared = (page, start) => page.waitForFunction(start => !document.getElementById('compare').hidden && document.getElementById('compare').textContent.startsWith(start), start);

/* What a program is told of the same text. */
async function predict(name, text, more = {}) {
  const response = await fetch(servers[name].url + '/v1/predict', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ text, ...more }) });
  return (await response.json()).answers[0];
}

/* A definition of the explorer's script, as the browser would have it. */
const inScript = name => new Function(readFileSync(new URL('../../web/page.js', import.meta.url), 'utf8') +
  readFileSync(new URL('../../web/explorer.js', import.meta.url), 'utf8').split('\n').find(line => line.startsWith(`const ${name} =`)) + `; return ${name};`)();

export const tests = {
  async 'explorer: an example, a link to it, and the certificate as a file'() {
    const page = await visit('plain');
    await page.click('#example');
    const text = await page.inputValue('#text');
    assert.ok(text.includes('wonderful film'));
    await page.click('button.main');
    await finished(page, 'original');
    await page.waitForSelector('#keep:not([hidden])');
    await accessible(page);
    const waiting = page.waitForEvent('download');
    await page.click('#export');
    const saved = JSON.parse(readFileSync(await (await waiting).path(), 'utf8')), answer = await predict('plain', text);
    assert.equal(saved.original.text, text);
    assert.deepEqual(saved.original.answer, answer);
    assert.equal(saved.changed, null);
    assert.equal(saved.original.certificate.certified, answer.certified);
    assert.ok(saved.model.model.sha256);
    await page.click('#share');
    await page.waitForFunction(() => document.getElementById('kept').textContent.startsWith('The link'));
    const link = await page.evaluate(() => location.href);
    await shot(page, 'explorer-keep');
    await leave(page);
    const other = await web.visit(link);
    other.home = servers.plain.url;
    await finished(other, 'original');
    assert.equal(await other.inputValue('#text'), text);
    await leave(other);
    const broken = await web.visit(servers.plain.url + '/#text=%E0%A4');
    broken.home = servers.plain.url;
    await broken.waitForFunction(() => document.getElementById('model').textContent);
    assert.equal(await broken.inputValue('#text'), '');
    await leave(broken);
  },

  async 'explorer: radius, delta and draws of a request, within the server\'s'() {
    const page = await visit('plain'), { text } = facts.explorer;
    assert.ok(!await page.isVisible('#radius'));
    await page.click('#terms summary');
    assert.match(await page.textContent('#terms'), /delta, at most 0\.01/);
    assert.match(await page.textContent('#terms'), /Draws, at most 5,000/);
    await accessible(page);
    for (const [id, wrong, words] of [['radius', '0', 'Words that may change: a whole number'], ['delta', '0.02', 'at most 0.01'], ['n', '5001', 'from 1 to 5,000']]) {
      await page.fill('#' + id, wrong);
      await ask(page, text);
      await trouble(page, words);
      assert.equal(await page.getAttribute('#' + id, 'aria-invalid'), 'true');
      assert.equal(await page.evaluate(() => document.activeElement.id), id);
      await page.fill('#' + id, '');
    }
    const terms = { radius: 1, delta: 0.001, n: 64 };
    for (const [id, value] of Object.entries(terms)) await page.fill('#' + id, String(value));
    await certify(page);
    const answer = await predict('plain', text, terms), words = await verdict(page, 'original');
    assert.ok(answer.queries <= 128);
    assert.match(words, answer.certified ? /^Certified:.* at most 0\.001;/ : /^Not certified|^Certified in part/);
    assert.ok(words.endsWith(` ${answer.queries} queries.`) || !answer.radius, words);
    await page.waitForSelector('#keep:not([hidden])');
    await page.click('#share');
    await page.waitForFunction(() => document.getElementById('kept').textContent.startsWith('The link'));
    const link = await page.evaluate(() => location.href);
    assert.ok(link.endsWith('&radius=1&delta=0.001&n=64'), link);
    await leave(page);
    const other = await web.visit(link);
    other.home = servers.plain.url;
    await finished(other, 'original');
    assert.equal(await verdict(other, 'original'), words);
    assert.ok(await other.isVisible('#delta'));
    await leave(other);
    const bounds = await visit('bounds');
    await bounds.click('#terms summary');
    assert.ok(await bounds.isVisible('#radius') && !await bounds.isVisible('#delta') && !await bounds.isVisible('#n'));
    await leave(bounds);
  },

  async 'explorer: two models beside each other'() {
    for (const [name, options] of [['light', {}], ['dark', { colorScheme: 'dark' }], ['narrow', { viewport: { width: 400, height: 900 } }]]) {
      const page = await visit('second', options), { text } = facts.explorer;
      assert.match(await page.textContent('#model'), /Second model: ngram, component\.model\.$/);
      await certify(page);
      await finished(page, 'second');
      await page.waitForSelector('#models:not([hidden])');
      const first = await predict('second', text), second = await predict('second', text, { model: 'second' });
      assert.equal(await page.textContent('#second .answer > bdi'), second.label);
      assert.match(await page.textContent('#models'), first.label === second.label ? /^Both models answer alike\. First: .* Second: / : /^The models differ\./);
      await accessible(page);
      await shot(page, 'explorer-second-' + name, { fullPage: true });
      if (name === 'light') {
        const waiting = page.waitForEvent('download');
        await page.click('#export');
        const saved = JSON.parse(readFileSync(await (await waiting).path(), 'utf8'));
        assert.deepEqual([saved.original.answer, saved.second.answer, saved.terms], [first, second, {}]);
      }
      await leave(page);
    }
    const alone = await visit('plain');
    await certify(alone);
    assert.ok(!await alone.isVisible('#second') && !await alone.isVisible('#models'));
    await leave(alone);
  },

  async 'explorer: a server that deletes by length opens'() {
    const page = await visit('kept');
    assert.match(await page.textContent('#model'), /Draws delete words by the length of the text \(keep:9\); up to 1 edit is certified\./);
    await certify(page);
    await leave(page);
  },

  async 'explorer: a server with edits says what it certifies'() {
    const page = await visit('edits');
    assert.match(await page.textContent('#model'), /Draws delete words with chance 0\.800; up to 1 edit is certified\./);
    assert.equal(facts.explorer.edits.length, 1);
    for (const text of facts.explorer.edits) {
      await certify(page, text);
      assert.match(await verdict(page, 'original'), /So it does with up to 1 word, number or mark taken out\./);
      assert.ok((await page.locator('#original svg text').allTextContents()).includes('1 edit'));
    }
    await leave(page);
  },

  async 'explorer: votes of groups, what each reads, and the edits that their lead withstands'() {
    for (const [name, options] of [['light', { viewport: { width: 1600, height: 1000 } }], ['dark', { viewport: { width: 1600, height: 1000 }, colorScheme: 'dark' }],
      ['narrow', { viewport: { width: 400, height: 900 } }], ['narrow-dark', { viewport: { width: 400, height: 900 }, colorScheme: 'dark' }]]) {
      const page = await visit('groups', options), text = facts.explorer.text + ' 10/10';
      assert.match(await page.textContent('#model'), /Method: votes of 9 groups; up to 2 edits are certified\.$/);
      assert.match(await page.textContent('#about'), /the groups vote/);
      assert.ok(!await page.isVisible('#original svg'));
      await ask(page, text);
      await page.waitForSelector('#keep:not([hidden])');
      const answer = await predict('groups', text), shown = await verdict(page, 'original');
      const counts = Object.values(answer.shares).map(share => Math.round(9 * share)).sort((a, b) => b - a), lead = counts[0] - counts[1];
      assert.match(await page.textContent('#original .answer'), new RegExp(`${counts[0]} of 9 groups$`));
      assert.deepEqual((await page.locator('#original .votes output').allTextContents()).map(Number), counts);
      assert.ok(shown.startsWith(answer.abstained ? 'Not certified.' : answer.certified ? 'Certified:' : 'Certified in part:'), shown);
      if (answer.edits) assert.ok(shown.includes(`So it does with up to ${answer.edits} word`), shown);
      if (!answer.certified && !answer.abstained) assert.ok(shown.includes(`The lead is ${lead} vote`), shown);
      assert.equal(Math.min(2, Math.max(0, Math.ceil(lead / 4) - 1)), answer.edits);
      assert.ok(!await page.isVisible('#original .groups ul'));
      await page.click('#original .groups summary');
      assert.match(await page.textContent('#original .groups p'), lead ? new RegExp(`^A lead of ${lead} vote`) : /^No class leads/);
      assert.equal(await page.locator('#original .groups li').count(), answer.queries);
      await page.locator('#original .groups button').first().click();
      const lit = await page.locator('#words .lit').allTextContents(), read = await page.locator('#original .groups .read').first().textContent();
      assert.ok(lit.length && lit.length === read.split(' ').length, `${lit} / ${read}`);
      assert.equal(await page.textContent('#words .said'), text);
      assert.equal(await page.locator('#words [data-group]:not(.for):not(.against):not(.none)').count(), 0);
      await chooseWord(page, 0);
      assert.match(await page.textContent('#word'), / is in group \d/);
      await accessible(page);
      await shot(page, 'explorer-groups-' + name, { fullPage: true });
      await page.click('#worst');
      await compared(page, `${answer.slots} words of`);
      assert.match(await page.textContent('#compare'), answer.abstained ? /not clear/ : /The answer holds, as it was certified\./);
      await page.locator('#original .groups button').first().click();
      assert.equal(await page.locator('#words .lit').count(), 0);
      if (name === 'light') {
        const waiting = page.waitForEvent('download');
        await page.click('#export');
        const saved = JSON.parse(readFileSync(await (await waiting).path(), 'utf8'));
        assert.deepEqual(saved.original.answer, answer);
        assert.equal(saved.original.groups.reduce((sum, vote) => sum + vote.count, 0), 9);
        assert.ok(await page.isVisible('#terms') && !await page.isVisible('#delta'));
        await page.click('#share');
        await page.waitForFunction(() => document.getElementById('kept').textContent.startsWith('The link'));
        const other = await web.visit(await page.evaluate(() => location.href));
        other.home = page.home;
        await other.waitForSelector('#keep:not([hidden])');
        assert.equal(await verdict(other, 'original'), shown);
        await leave(other);
      }
      await leave(page);
    }
  },

  async 'explorer: more edits are withstood by larger leads, none by ties'() {
    const source = readFileSync(new URL('../../web/explorer.js', import.meta.url), 'utf8');
    const withstood = new Function(source.split('\n').filter(line => /^const (PER_EDIT|withstood) =/.test(line)).join('\n') + '; return withstood;')();
    for (const [lead, any, one] of [[-3, 0, 0], [0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1], [4, 0, 1], [5, 1, 2], [8, 1, 3], [9, 2, 4], [10000, 64, 64]])
      assert.deepEqual([withstood(lead, 'any'), withstood(lead, 'replace'), withstood(lead, 'insert'), withstood(lead, 'delete')], [any, any, one, one], String(lead));
  },

  async 'explorer: no share is rounded up, and no bound to the side that claims more'() {
    const percent = inScript('percent');
    for (const [share, shown] of [[.75047, '75.0%'], [.9996, '99.9%'], [1, '100.0%'], [0, '0.0%'], [.29, '29.0%'], [.57, '57.0%'], [2 / 3, '66.6%'],
      [.5669, '56.6%']]) assert.equal(percent(share), shown);
    const [down, up] = new Function(readFileSync(new URL('../../web/page.js', import.meta.url), 'utf8') + 'return [stepsDown, stepsUp];')();
    for (let i = 0; i < 20000; i++) {
      const x = i % 2 ? i / 20000 : Math.random(), k = down(x, 10000), m = up(x, 10000);
      assert.ok(k / 10000 <= x && (k + 1) / 10000 > x && m / 10000 >= x && (m - 1) / 10000 < x, String(x));
    }
  },

  async 'explorer: answer, certificate and words are the server\'s'() {
    const page = await visit('plain'), answer = await predict('plain', facts.explorer.text);
    await certify(page);
    assert.equal(await page.textContent('#original .answer > bdi'), answer.label);
    const words = await verdict(page, 'original');
    if (answer.radius === 'all') assert.ok(words.startsWith('Certified: whatever words'), words);
    else if (answer.radius) assert.ok(words.includes(`with up to ${answer.radius} word`), words);
    else assert.ok(words.startsWith('Not certified'), words);
    if (answer.radius) assert.match(words, /The chance that a text that could be attacked gets a certificate is at most 0\.01; it is not the chance that a given certificate is wrong\./);
    assert.equal(await page.locator('#words .w[data-word]').count(), answer.slots);
    assert.equal(await page.textContent('#words .said'), facts.explorer.text);
    assert.equal(await page.textContent('#changed-text'), facts.explorer.text);
    assert.match(await verdict(page, 'changed'), /^Nothing is changed/);
    assert.ok(await page.isDisabled('#back'));
    assert.match(await page.textContent('#size'), /^[\d,]+ of 3,000 bytes$/);
    await leave(page);
  },

  async 'explorer: the certificate grows while draws are made'() {
    const page = await visit('slow');
    await page.evaluate(() => {
      window.seen = [];
      new MutationObserver(() => {
        const words = document.querySelector('#original .verdict').textContent, path = document.querySelector('#original svg .curve')?.getAttribute('d') || '';
        if (/^\d[\d,]* draws?\./.test(words) && window.seen.at(-1)?.words !== words) window.seen.push({ words, points: path.split('L').length });
      }).observe(document.querySelector('#original .verdict'), { childList: true });
    });
    await ask(page, facts.explorer.text);
    await page.waitForFunction(() => window.seen.length >= 3);
    await shot(page, 'explorer-growing', { fullPage: true });
    await finished(page, 'original');
    const seen = await page.evaluate(() => window.seen), counts = seen.map(({ words }) => Number(words.split(' ')[0].replace(',', '')));
    assert.ok(counts.every((n, i) => !i || n > counts[i - 1]), String(counts));
    assert.ok(seen.at(-1).points > seen[0].points);
    assert.ok(seen.every(({ words }) => /So far/.test(words)), JSON.stringify(seen[0]));
    const n = Number((await page.textContent('#original .answer')).match(/of ([\d,]+) draws/)[1].replace(',', ''));
    assert.ok(n >= counts.at(-1));
    await leave(page);
  },

  async 'explorer: a question takes the place of one that is not answered yet'() {
    const page = await visit('slow');
    await ask(page, facts.explorer.text);
    await page.waitForFunction(() => /draws?\./.test(document.querySelector('#original .verdict').textContent));
    await certify(page, facts.explorer.text + ' Really.');
    assert.ok((await page.textContent('#words .said')).endsWith(' Really.'));
    assert.ok(!await page.isVisible('#trouble'));
    await leave(page);
  },

  async 'explorer: synonyms are put in, and the answer holds'() {
    const page = await visit('plain');
    await certify(page);
    await chooseWord(page, 0);
    const { word, synonym } = facts.explorer;
    assert.equal(await page.textContent('#word strong'), word.toLowerCase());
    await page.click(`#synonyms button:has(bdi:text-is("${synonym}"))`);
    await compared(page, '1 word of');
    const answer = await predict('plain', facts.explorer.changed);
    assert.equal(await page.textContent('#changed-text'), facts.explorer.changed);
    assert.equal(await page.textContent('#changed-text ins'), synonym[0].toUpperCase() + synonym.slice(1)); /* the word has a capital */
    assert.equal(await page.textContent('#changed .answer > bdi'), answer.label);
    assert.ok(await page.locator('#words .w[data-word]').first().evaluate(element => element.classList.contains('exchanged')));
    assert.match(await page.textContent('#compare'), /The answer holds/);
    await page.click('#synonyms button:has-text("as it was")');
    await page.waitForFunction(() => document.getElementById('compare').hidden);
    assert.equal(await page.textContent('#changed-text'), facts.explorer.text);
    const slots = await page.locator('#words .w[data-word]').count();
    for (const button of ['#worst', '#random']) {
      await page.click(button);
      await compared(page, `${slots} words of ${slots} changed`);
      assert.equal(await page.locator('#changed-text ins').count(), slots);
    }
    await page.click('#back');
    await page.waitForFunction(() => document.getElementById('compare').hidden);
    assert.equal(await page.locator('#changed-text ins').count(), 0);
    await leave(page);
  },

  async 'explorer: by keyboard alone'() {
    const page = await visit('plain');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'text');
    await page.keyboard.type(facts.explorer.text.slice(0, 120));
    await page.keyboard.press('Control+Enter');
    await finished(page, 'original');
    await page.waitForSelector('#keep:not([hidden])');
    for (let i = 0; i < 6; i++) await page.keyboard.press('Tab'); /* certify, example, terms, link, file, the first word */
    assert.equal(await page.evaluate(() => document.activeElement.textContent), facts.explorer.word);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-pressed')), 'true');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await compared(page, '1 word of');
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-pressed')), 'true');
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => document.activeElement.dataset.word !== undefined), true);
    await leave(page);
  },

  async 'explorer: dark, light, on a phone; no serious finding of axe'() {
    for (const [name, options] of Object.entries({ light: { colorScheme: 'light' }, dark: { colorScheme: 'dark' }, phone: { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 } })) {
      const page = await visit('plain', options);
      await accessible(page);
      await certify(page);
      await chooseWord(page, 1);
      await page.click('#synonyms button >> nth=1');
      await compared(page, '1 word of');
      await accessible(page);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), options.viewport ? 360 : 1200);
      if (name === 'light') assert.ok(await brightness(page) > 600);
      if (name === 'dark') assert.ok(await brightness(page) < 150);
      await shot(page, `explorer-${name}`, { fullPage: true });
      await leave(page);
    }
  },

  async 'explorer: interval bounds have no draws to show'() {
    const page = await visit('bounds');
    await certify(page);
    assert.match(await page.textContent('#original .answer'), /by the model itself/);
    assert.match(await verdict(page, 'original'), /interval bounds/);
    assert.match(await page.textContent('#model'), /interval bounds/);
    await page.click('#worst');
    await compared(page, `${await page.locator('#words .w[data-word]').count()} words of`);
    await leave(page);
  },

  async 'explorer: hostile texts and labels stay texts'() {
    const page = await visit('hostile');
    for (const { text, slots } of facts.explorer.hostile) {
      await certify(page, text);
      assert.equal(await page.textContent('#words .said'), text.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '\ufffd'));
      assert.deepEqual(await page.$$eval('#words .w[data-word]', words => words.map(word => word.textContent.toLowerCase())), slots);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      if (!slots.length) continue;
      await page.click('#worst');
      await compared(page, `${slots.length} word`);
    }
    assert.ok(facts.explorer.labels.includes(await page.textContent('#original .vote bdi')));
    assert.equal(await page.locator('main script, main img, main iframe, main b').count(), 0);
    assert.equal(await page.evaluate(() => window.broken), undefined);
    await leave(page);
  },

  async 'explorer: without a token, with a wrong one, with the right one'() {
    const page = await visit('token');
    await trouble(page, 'its token');
    await page.fill('#token', 'not-this');
    await ask(page, facts.explorer.text);
    await trouble(page, 'does not know this token');
    await page.fill('#token', '\u20ac');
    await page.click('button.main');
    await trouble(page, 'cannot be a token');
    await page.fill('#token', servers.token.token);
    await certify(page);
    assert.ok(!await page.isVisible('#trouble'));
    assert.match(await page.textContent('#model'), /ngram/);
    await accessible(page);
    await leave(page, true);
  },

  async 'explorer: too long, too busy, too late'() {
    const page = await visit('plain');
    await ask(page, 'a good film '.repeat(1000));
    assert.equal(await page.getAttribute('#size', 'class'), 'over');
    await trouble(page, 'That is too long');
    const refuse = (status, code, headers) => page.route('**/v1/certify/stream', route => route.fulfill({ status, headers, contentType: 'application/json',
      body: JSON.stringify({ error: { code, message: '<b>why</b>' } }) }));
    for (const [status, code, headers, words] of [[503, 'busy', { 'Retry-After': '7' }, 'Try again in 7 seconds.'], [504, 'deadline', {}, 'did not finish in time'],
      [500, 'failed', {}, 'The server could not answer: <b>why</b>.']]) {
      await refuse(status, code, headers);
      await ask(page, 'A good film.');
      await trouble(page, words);
      assert.match(await verdict(page, 'original'), /^No certificate/);
      await page.unroute('**/v1/certify/stream');
    }
    await certify(page);
    assert.ok(!await page.isVisible('#trouble'));
    await leave(page, true);
  },

  async 'explorer: a server with a fold shows what it reads'() {
    const page = await visit('edits'), text = 'A g\u043e\u043ed f\u200bilm, a g\u043e\u043ed pl\u0430y. <i>';
    await certify(page, text);
    const said = await page.textContent('#folded');
    assert.match(said, /^What is read/);
    assert.match(said, /5 places were folded\. The answer, and all that is certified, holds for every text that folds to this one\./);
    assert.equal(await page.textContent('#folded .said'), 'a good film, a good play. <i>');
    const items = await page.$$eval('#folded li', list => list.map(item => item.textContent));
    assert.deepEqual(items, ['A (U+0041) became a', '\u043e\u043e (U+043E U+043E) became oo, 2 times', 'f\u200b (U+0066 U+200B) became f',
      '\u0430 (U+0430) became a']);
    assert.match(said, /Steps of the fold: nfkc, case, ignorable, marks, lookalikes; Unicode \d+\.\d+/);
    await accessible(page);
    await shot(page, 'explorer-fold');
    const other = await predict('edits', 'a good film, a good play. <i>'), same = await predict('edits', text);
    assert.equal(same.label, other.label); /* as the page says */
    await certify(page, 'a good film');
    assert.match(await page.textContent('#folded'), /Nothing in this text is changed by the fold\./);
    assert.equal(await page.locator('#folded li').count(), 0);
    await leave(page);
    const plain = await visit('plain');
    await certify(plain);
    assert.ok(!await plain.isVisible('#folded'));
    await leave(plain);
  },

  async 'the picture of the explorer'() {
    const page = await visit('plain', { viewport: { width: 960, height: 1500 } });
    await certify(page);
    for (const choice of ['.o0', '.o2']) { /* one that changes nothing, one that matters */
      await page.click(`#words .w${choice}[data-word] >> nth=0`);
      await page.click('#synonyms button >> nth=1');
    }
    await compared(page, '2 words of');
    await page.mouse.move(0, 0);
    const [top, bottom] = await page.evaluate(() => [document.getElementById('compare').getBoundingClientRect().top, document.getElementById('sides').getBoundingClientRect().bottom]);
    await shot(page, 'explorer', { clip: { x: 0, y: top - 8, width: 960, height: bottom - top + 16 } });
    await leave(page);
  },

  async 'explorer: the server goes away'() { /* the last: it does */
    const page = await visit('slow');
    await ask(page, facts.explorer.text);
    await page.waitForFunction(() => /draws?\./.test(document.querySelector('#original .verdict').textContent));
    process.kill(servers.slow.pid, 'SIGKILL');
    await trouble(page, 'The connection broke');
    assert.match(await verdict(page, 'original'), /^No certificate/);
    await page.click('button.main');
    await trouble(page, 'The server cannot be reached');
    await leave(page, true);
  },
};
