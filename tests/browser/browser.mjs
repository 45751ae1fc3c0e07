/* What the tests in a browser share: one Chromium for all of them, pages that remember every
 * complaint, screenshots, an accessibility checker, and limits on time.
 *
 * A machine that runs tests may be busy. So nothing here waits for a fixed time: every wait is
 * for a condition, and gives up after two minutes. */
import { chromium } from 'playwright-core';
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import os from 'node:os';
import path from 'node:path';

export const folder = path.resolve(process.argv[2]);
export const facts = JSON.parse(readFileSync(path.join(folder, 'facts.json'), 'utf8'));
const shots = path.join(folder, 'shots'), PATIENCE = 120000;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
mkdirSync(shots, { recursive: true });

/* /dev/shm is small in containers, and there is no GPU. */
export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium', timeout: PATIENCE,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});

/* A page of its own; every complaint and every request is kept. */
export async function visit(address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.complaints = [];
  page.requests = [];
  page.on('console', message => { if (message.type() !== 'log') page.complaints.push(`${message.type()}: ${message.text()}`); });
  page.on('pageerror', error => page.complaints.push(`error: ${error.message}`));
  page.on('dialog', dialog => { page.complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', request => page.requests.push(request.url()));
  page.began = begin();
  await page.goto(address);
  return page;
}

/* `home` is where all its requests must have gone. `refused`: some were refused, of which the
 * browser itself complains. */
export async function leave(page, home, refused) {
  assert.deepEqual(page.complaints.filter(words => !refused || !words.startsWith('error: Failed to load resource')), [], 'the page complains');
  assert.deepEqual(page.requests.filter(url => !url.startsWith(home) && !url.startsWith('blob:')), [], 'it asks for something else');
  await page.context().close();
}

export const shot = (page, name, options = {}) => page.screenshot({ path: path.join(shots, name + '.png'), ...options });

export async function accessible(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  const serious = found.violations.filter(v => ['serious', 'critical'].includes(v.impact));
  assert.deepEqual(serious.map(v => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)).join(' | ')}`), []);
}

/* The sum of red, green and blue behind the page: 0 is black, 765 white. */
export const brightness = page => page.evaluate(() => {
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
  return r + g + b;
});

/* ------------------------------------------------------------------ time */

/* Seconds of processor time that the page's own process has used. */
export async function work(page) {
  page.cdp ||= await page.context().newCDPSession(page);
  await page.cdp.send('Performance.enable');
  const { metrics } = await page.cdp.send('Performance.getMetrics');
  return metrics.find(metric => metric.name === 'ProcessTime').value;
}

const idle = () => os.cpus().reduce((sum, cpu) => sum + cpu.times.idle, 0);
export const begin = () => ({ clock: performance.now(), idle: idle() });

/* A limit in milliseconds, on the clock. Where the processors were never idle, others kept
 * them busy, or the page did; its own work is judged then. */
export function judge(name, limit, began, worked) {
  const clock = performance.now() - began.clock, busy = idle() - began.idle < .2 * clock * os.cpus().length;
  console.log(`        ${name}: ${Math.round(clock)} ms, ${Math.round(1000 * worked)} ms of work${busy ? ' (the machine is busy)' : ''}`);
  assert.ok((busy ? Math.min(clock, 1000 * worked) : clock) < limit, `${name} took ${Math.round(clock)} ms, at most ${limit}`);
}
