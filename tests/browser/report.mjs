/* The report, as test_browser.py made it: demo.html (two runs, texts and words), large.html
 * (25,000 texts), hostile.html (texts that try to break it), bare.html (records alone),
 * bounds.html (a run by interval bounds, and one by votes). */
import assert from 'node:assert/strict';
import path from 'node:path';
import * as web from './browser.mjs';
import { accessible, begin, brightness, facts, folder, judge, shot, work } from './browser.mjs';

async function visit(name, options = {}) {
  const page = await web.visit('file://' + path.join(folder, name) + (options.hash || ''), options);
  if (options.javaScriptEnabled !== false) await page.waitForSelector('#table.live tbody tr[data-index]');
  return page;
}

const leave = page => web.leave(page, 'file://' + folder);
const status = page => page.textContent('#shown');
const column = (page, number) => page.$$eval('#table tbody tr[data-index]', (rows, n) => rows.map(row => row.cells[n].textContent), number);
const sort = (page, key) => page.click(`#table th[data-key=${key}] button`);
const openFirst = async page => { await page.click('#table tbody tr[data-index] button.open'); await page.waitForSelector('#text[open] .said'); };

export const tests = {
  async 'the figures are those of the runs'() {
    const page = await visit('demo.html');
    const text = (await page.textContent('main')).replace(/\s+/g, ' ');
    for (const run of facts.demo) for (const figure of run.figures) assert.ok(text.includes(figure), `${run.name}: ${figure}`);
    assert.equal(await page.locator('.plots svg.plot').count(), 6);
    assert.equal(await page.locator('article').count(), 2);
    await shot(page, 'demo', { fullPage: true });
    await leave(page);
  },

  async 'sorting by every column, both ways'() {
    const page = await visit('demo.html');
    const keys = await page.$$eval('#table th', heads => heads.map(head => head.dataset.key));
    for (const [n, key] of keys.entries()) {
      if (key === 'row') continue;
      await sort(page, key);
      assert.equal(await page.getAttribute(`#table th[data-key=${key}]`, 'aria-sort'), 'ascending');
      const up = await column(page, n);
      await sort(page, key);
      assert.equal(await page.getAttribute(`#table th[data-key=${key}]`, 'aria-sort'), 'descending');
      const down = await column(page, n);
      const value = words => words === 'all' ? Infinity : Number.isNaN(Number(words.replaceAll(',', ''))) ? words : Number(words.replaceAll(',', ''));
      const rising = list => list.every((words, i) => !i || !(value(words) < value(list[i - 1])));
      assert.ok(rising(up), `${key}: ${up.slice(0, 5)}`);
      assert.ok(rising(down.slice().reverse()), `${key} down: ${down.slice(0, 5)}`);
    }
    await leave(page);
  },

  async 'what is certified and not answered can be found, and says both'() {
    const { certified, answered, first } = facts.demo[0].few, all = facts.demo[0].texts.toLocaleString('en');
    const page = await visit('few.html', { hash: `#text=1.${first + 1}` });
    await page.waitForSelector('#text[open] .verdict');
    assert.match(await page.textContent('#text .verdict'), /^Certified\. .* it is not answered\.$/);
    await page.click('#close');
    for (const [outcome, count] of [['certified and answered', answered], ['certified, not answered', certified - answered]]) {
      await page.selectOption('#by-outcome', outcome);
      assert.equal(await status(page), `${count.toLocaleString('en')} of ${all} texts`);
    }
    await leave(page);
  },

  async 'filtering by id, words, label and outcome'() {
    const page = await visit('demo.html');
    const all = facts.demo[0].texts;
    assert.equal(await status(page), `${all.toLocaleString('en')} texts`);
    await page.fill('#by-id', facts.demo[0].id);
    await page.waitForFunction(id => document.querySelectorAll('#table tbody tr[data-index]').length === 1, facts.demo[0].id);
    assert.deepEqual(await column(page, 1), [facts.demo[0].id]);
    await page.fill('#by-id', facts.demo[0].word);
    await page.waitForFunction(n => document.getElementById('shown').textContent.startsWith(n + ' of'), facts.demo[0].withWord.toLocaleString('en'));
    await page.fill('#by-id', '');
    await page.waitForFunction(() => !document.getElementById('shown').textContent.includes('of'));
    await page.selectOption('#by-outcome', 'certified');
    assert.equal(await status(page), `${facts.demo[0].certified.toLocaleString('en')} of ${all.toLocaleString('en')} texts`);
    assert.ok((await column(page, 10)).every(words => words === 'yes'));
    await page.selectOption('#by-label', '1');
    assert.ok((await column(page, 2)).every(words => words === '1'));
    await page.fill('#by-id', 'no such text at all');
    await page.waitForFunction(() => document.getElementById('shown').textContent.startsWith('0 of'));
    await page.selectOption('#by-run', '1');
    assert.equal(await page.inputValue('#by-label'), '-2');
    await leave(page);
  },

  async 'a text by click: its words, their synonyms, the worst of them'() {
    const page = await visit('demo.html');
    await openFirst(page);
    assert.equal(await page.textContent('.said:not(.diff)'), facts.demo[0].firstText);
    const words = await page.locator('.said .w').count();
    assert.equal(words, facts.demo[0].firstSlots);
    const word = page.locator('.said .w').first();
    await word.hover();
    await page.waitForSelector('#word dl');
    const panel = await page.textContent('#word');
    for (const part of ['overlap', 'worst synonym', 'synonyms', 'draws', facts.demo[0].firstWord]) assert.ok(panel.includes(part), panel);
    for (const synonym of facts.demo[0].firstSynonyms) assert.ok(panel.includes(synonym), `${synonym}: ${panel}`);
    await shot(page, 'text');
    await page.click('#next');
    await page.waitForFunction(() => document.getElementById('text-title').textContent.startsWith('Text 2'));
    await page.waitForSelector('.said');
    await page.click('#close');
    assert.equal(await page.locator('dialog[open]').count(), 0);
    await leave(page);
  },

  async 'a text by keyboard alone'() {
    const page = await visit('demo.html');
    await page.focus('#window');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#text[open] .said');
    assert.ok((await page.textContent('#text-title')).startsWith('Text 3'));
    for (let i = 0; i < 4; i++) await page.keyboard.press('Tab'); /* previous, next, close, the first word */
    assert.ok(await page.evaluate(() => document.activeElement.classList.contains('w')));
    const first = await page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press('ArrowRight');
    assert.notEqual(await page.evaluate(() => document.activeElement.dataset.word), undefined);
    await page.keyboard.press('ArrowLeft');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), first);
    await page.waitForSelector('#word dl');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('dialog[open]'));
    assert.ok(await page.evaluate(() => document.activeElement.classList.contains('open')), 'the focus is back in the table');
    await page.keyboard.press('End');
    assert.equal(Number(await page.evaluate(() => document.activeElement.closest('tr').cells[0].textContent)), facts.demo[0].texts);
    await page.keyboard.press('Home');
    assert.equal(Number(await page.evaluate(() => document.activeElement.closest('tr').cells[0].textContent)), 1);
    await page.focus('#table th[data-key=q] button');
    await page.keyboard.press('Enter');
    assert.equal(await page.getAttribute('#table th[data-key=q]', 'aria-sort'), 'ascending');
    await leave(page);
  },

  async 'a point of the margin plot opens its text'() {
    const page = await visit('demo.html');
    const svg = page.locator('figure.margin[data-run="0"] svg.plot');
    await svg.scrollIntoViewIfNeeded();
    const at = await svg.evaluate((svg, [q, bound]) => {
      const p = new DOMPoint(54 + q * 414, 14 + (1 - bound) * 238).matrixTransform(svg.getScreenCTM());
      return [p.x, p.y];
    }, [facts.demo[0].point.q, facts.demo[0].point.bound]);
    await page.mouse.click(at[0], at[1]);
    await page.waitForSelector('#text[open] .said');
    const dialog = await page.textContent('#text .config');
    assert.ok(dialog.includes('q' + facts.demo[0].point.shownQ), dialog);
    assert.equal(await page.locator('figure.margin circle.chosen').count(), 1);
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('figure.margin[data-run="1"]').count(), 0, 'a picture that would say nothing');
    assert.ok((await page.textContent('.flat')).includes('component: q is 0'));
    await page.selectOption('#by-run', '1');
    await openFirst(page); /* it has no picture to mark */
    await leave(page);
    const edits = await visit('edits.html');
    await edits.locator('figure.margin[data-run="1"] svg.plot').focus();
    await edits.keyboard.press('ArrowRight');
    await edits.keyboard.press('Enter');
    await edits.waitForSelector('#text[open]');
    assert.equal(await edits.inputValue('#by-run'), '1');
    await leave(edits);
  },

  async 'edits and folds: curve, column, words; title and notes'() {
    for (const options of [{ viewport: { width: 400, height: 900 } }, { viewport: { width: 1600, height: 1000 }, colorScheme: 'dark' }]) {
      const page = await visit('edits.html', options), { first, certified } = facts.demo[0].edits;
      assert.equal(await page.textContent('h1'), 'Edits & <i>folds</i>');
      assert.ok((await page.textContent('.notes')).startsWith('Notes & <b>more</b>\n'));
      assert.ok((await page.textContent('article:nth-child(2)')).includes('every spelling that folds to the same text'));
      assert.equal(await page.locator('figure:has(#edits-title) svg').count(), 1);
      await page.selectOption('#by-run', '1');
      await sort(page, 'edits');
      await sort(page, 'edits');
      const shown = await column(page, 10);
      assert.equal(Number(shown[0]) > 0, certified > 0);
      assert.deepEqual(shown, shown.slice().sort((a, b) => b - a));
      await page.evaluate(hash => { location.hash = hash; }, `#text=2.${first + 1}`);
      await page.waitForSelector('#text[open] .verdict');
      assert.match(await page.textContent('#text .verdict'), /So it does with up to 1 word, number or mark put in, taken out or replaced, beside any synonyms\./);
      assert.match(await page.textContent('#text .config'), /edits \(any\)1 of 2/);
      await accessible(page);
      await page.keyboard.press('Escape');
      await accessible(page);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      await shot(page, 'edits-' + options.viewport.width, { fullPage: true });
      await leave(page);
    }
  },

  async 'attacks: a table, a column, filters'() {
    const page = await visit('demo.html'), all = facts.demo[0].texts;
    assert.match((await page.textContent('#attacks ~ div')).replace(/\s+/g, ' '), /textfooler on the base model ?topk ?3 of 400/);
    const keys = await page.$$eval('#table th', heads => heads.map(head => head.dataset.key)), at = keys.indexOf('attack');
    assert.deepEqual((await column(page, at)).slice(0, 4), ['fell', 'held', 'wrong before', '\u2013']);
    for (const [outcome, count] of [['fell to an attack', 1], ['held against every attack', 1]]) {
      await page.selectOption('#by-outcome', outcome);
      assert.equal(await status(page), `${count} of ${all} texts`);
    }
    await leave(page);
    const bare = await visit('bare.html');
    assert.equal(await bare.locator('#by-outcome option', { hasText: 'attack' }).count(), 0);
    await leave(bare);
  },

  async 'on paper: the first texts and no empty pages, dark on light'() {
    const page = await visit('large.html', { colorScheme: 'dark' });
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    assert.ok(await brightness(page) > 600);
    await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
    assert.equal(await page.locator('#table tbody tr').count(), 200);
    assert.equal(await page.locator('#table tbody tr.gap').count(), 0);
    assert.equal(await page.textContent('#printed'), 'The first 200 of them:');
    assert.equal(await page.locator('#controls').isVisible(), false);
    assert.ok(await page.evaluate(() => { const w = document.getElementById('window'); return w.scrollHeight <= w.clientHeight; }), 'all rows can be seen');
    await page.emulateMedia({ media: 'screen', colorScheme: 'dark' });
    await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
    assert.ok(await page.locator('#table tbody tr').count() < 100);
    assert.ok(await brightness(page) < 150);
    await leave(page);
  },

  async 'what an attack changed'() {
    const page = await visit('demo.html');
    await openFirst(page);
    await page.waitForSelector('.attack .diff');
    assert.equal(await page.textContent('.attack .diff'), facts.demo[0].attack.diff);
    assert.deepEqual([await page.textContent('.attack del'), await page.textContent('.attack ins')], [facts.demo[0].attack.from, '<b>replaced</b>']);
    await page.click('#next');
    await page.waitForFunction(() => document.querySelector('.attack')?.textContent.includes('It failed'));
    await page.click('#next');
    await page.waitForFunction(() => document.querySelector('.attack')?.textContent.includes('was not tried'));
    await page.keyboard.press('Escape');
    await page.selectOption('#by-run', '1'); /* another model: it was not attacked */
    await openFirst(page);
    assert.equal(await page.locator('.attack').count(), 0);
    await leave(page);
  },

  async 'an address opens a text'() {
    const page = await visit('demo.html', { hash: '#text=2.5' });
    await page.waitForSelector('#text[open] .said');
    assert.ok((await page.textContent('#text-title')).startsWith('Text 5'));
    assert.equal(await page.inputValue('#by-run'), '1');
    await leave(page);
  },

  async 'a text asked for while another closes'() {
    const page = await visit('demo.html', { hash: '#text=1.1' });
    await page.waitForSelector('#text[open] .said');
    const shows = n => page.waitForFunction(n => document.querySelector('#text[open] .said') && document.getElementById('text-title').textContent.startsWith(`Text ${n}:`) &&
      location.hash === `#text=1.${n}`, n);
    /* The events of closing and of the new address come later, in this order and in the other. */
    await page.evaluate(() => { document.getElementById('text').close(); location.hash = '#text=1.2'; });
    await shows(2);
    await page.evaluate(() => { location.hash = '#text=1.3'; document.getElementById('text').close(); });
    await shows(3);
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await shows(3);
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('dialog[open]') && location.hash === '');
    await leave(page);
  },

  async 'dark and light'() {
    const light = await visit('demo.html', { colorScheme: 'light' }), dark = await visit('demo.html', { colorScheme: 'dark' });
    assert.ok(await brightness(light) > 600);
    assert.ok(await brightness(dark) < 150);
    await shot(dark, 'dark', { fullPage: true });
    await openFirst(dark);
    await shot(dark, 'dark-text');
    await leave(light);
    await leave(dark);
  },

  async 'on a phone nothing is wider than the screen'() {
    const page = await visit('demo.html', { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
    const width = () => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.deepEqual(await width(), [360, 360]);
    await shot(page, 'phone', { fullPage: true });
    await openFirst(page);
    const box = await page.locator('#text').boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
    await page.locator('.said .w').first().tap();
    await page.waitForSelector('#word dl');
    await shot(page, 'phone-text');
    await leave(page);
  },

  async 'no serious finding of axe: light, dark, phone, an open text'() {
    for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { viewport: { width: 360, height: 740 } }]) {
      const page = await visit('demo.html', options);
      await accessible(page);
      await openFirst(page);
      await page.focus('.said .w');
      await page.waitForSelector('#word dl');
      await accessible(page);
      await leave(page);
    }
    const plain = await visit('bare.html');
    await accessible(plain);
    await leave(plain);
  },

  async 'legible without JavaScript'() {
    const page = await visit('demo.html', { javaScriptEnabled: false });
    const text = (await page.innerText('main')).replace(/\s+/g, ' ');
    for (const run of facts.demo) for (const figure of run.figures) assert.ok(text.includes(figure), figure);
    assert.equal(await page.locator('#table tbody tr').count(), 100);
    assert.equal(await page.locator('svg.plot').count(), 6);
    assert.ok(text.includes('all of them can be seen with JavaScript'));
    assert.equal(await page.locator('#controls').isVisible(), false);
    await shot(page, 'no-javascript', { fullPage: true });
    await leave(page);
  },

  async 'records alone: figures and table, no texts'() {
    const page = await visit('bare.html');
    await page.click('#table tbody tr[data-index] button.open');
    await page.waitForSelector('#text[open]');
    assert.ok((await page.textContent('#text')).includes('not in this page'));
    await leave(page);
  },

  async 'a run by interval bounds has no votes to show'() {
    const page = await visit('bounds.html');
    assert.deepEqual(await page.$$eval('article', articles => articles.map(article => article.querySelectorAll('.tile').length)), [2, 4]);
    assert.equal(await page.locator('figure.margin').count(), 0);
    assert.equal(await page.locator('.flat').filter({ hasText: 'Margin' }).count(), 1);
    assert.deepEqual([...new Set([...await column(page, 7), ...await column(page, 8)])], ['\u2013']);
    await openFirst(page);
    const panel = await page.textContent('#text .config');
    assert.match(panel, /least lead, logits-?\d+\.\d{4}/);
    assert.ok(!panel.includes('bound'), panel);
    await page.hover('.said .w');
    await page.waitForSelector('#word dl');
    assert.equal(await page.textContent('#word dt'), 'synonyms');
    assert.equal(await page.locator('#word dt').count(), 1);
    await accessible(page);
    await shot(page, 'bounds-text');
    await leave(page);
  },

  async 'hostile texts stay texts'() {
    const page = await visit('hostile.html');
    assert.equal(await page.evaluate(() => window.broken), undefined);
    for (const [i, expected] of facts.hostile.entries()) {
      await page.evaluate(hash => { location.hash = hash; }, `#text=1.${i + 1}`);
      await page.waitForFunction(n => document.getElementById('text-title').textContent.startsWith(`Text ${n}`) && document.querySelector('.said'), i + 1);
      const shown = await page.textContent('.said');
      assert.equal(shown.length, expected.units, `text ${i + 1}`);
      assert.ok(shown.startsWith(expected.start), `text ${i + 1}: ${shown.slice(0, 60)}`);
      assert.ok((await page.textContent('#text-title')).endsWith(expected.id), expected.id);
      assert.deepEqual(await page.$$eval('.said .w', words => words.map(word => word.textContent.toLowerCase())), expected.slots);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.getElementById('text').scrollWidth <= innerWidth));
      await page.keyboard.press('Escape');
    }
    assert.equal(await page.locator('main script, main img, main iframe').count(), 0);
    assert.equal(await page.evaluate(() => window.broken), undefined);
    await leave(page);
  },

  async '25,000 texts open in two seconds and stay responsive'() {
    const page = await visit('large.html');
    judge(`opening ${(facts.large.bytes / 1e6).toFixed(1)} MB`, 2000, page.began, await work(page));
    assert.equal(await status(page), '25,000 texts');
    assert.ok(await page.locator('#table tbody tr').count() < 100, 'only rows in sight exist');
    const timed = async (name, limit, action) => {
      const began = begin(), before = await work(page);
      await action();
      await page.evaluate(() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))); /* until it is painted */
      judge(name, limit, began, await work(page) - before);
    };
    await timed('scroll to the end', 300, () => page.evaluate(() => { const w = document.getElementById('window'); w.scrollTop = w.scrollHeight; }));
    await page.waitForFunction(() => Array.from(document.querySelectorAll('#table tbody tr[data-index]')).at(-1)?.cells[0].textContent === '25000');
    await timed('sort by q', 700, () => sort(page, 'q'));
    await timed('sort by id', 1500, () => sort(page, 'id'));
    await timed('filter by outcome', 500, () => page.selectOption('#by-outcome', 'certified'));
    await timed('open a text', 1000, () => openFirst(page));
    await page.keyboard.press('Escape');
    await page.selectOption('#by-outcome', 'all texts');
    await timed('search in all texts', 3000, async () => {
      await page.fill('#by-id', facts.large.word);
      await page.waitForFunction(n => document.getElementById('shown').textContent.startsWith(n + ' of'), facts.large.withWord.toLocaleString('en'));
    });
    await page.fill('#by-id', '');
    await page.waitForFunction(() => document.getElementById('shown').textContent === '25,000 texts');
    await timed('60 screens of rows', 6000, () => page.evaluate(async () => {
      const w = document.getElementById('window');
      for (let i = 0; i < 60; i++) {
        w.scrollTop += 900;
        await new Promise(requestAnimationFrame);
      }
    }));
    await shot(page, 'large');
    await leave(page);
  },

  async 'the picture of README'() {
    const page = await visit('demo.html', { viewport: { width: 1100, height: 1120 } });
    await shot(page, 'report');
    await leave(page);
  },
};
