/* All tests in one browser: node main.mjs FOLDER [WORDS...]. Run by tests/test_browser.py, which
 * makes what the tests look at in FOLDER, and facts.json, what must be seen there. WORDS choose
 * tests by name. Prints a line a test, and cmocka's closing lines; screenshots go to FOLDER/shots. */
import { browser } from './browser.mjs';
import { tests as explorer } from './explorer.mjs';
import { tests as report } from './report.mjs';

const chosen = process.argv.slice(3);
let passed = 0, failed = 0;
for (const [name, test] of Object.entries({ ...report, ...explorer })) {
  if (chosen.length && !chosen.some(words => name.includes(words))) continue;
  try {
    await test();
    passed++;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}\n        ${String(error.message).replaceAll('\n', '\n        ')}`);
  }
}
await browser.close();
console.log(`[  PASSED  ] ${passed} test(s).`);
if (failed) console.log(`[  FAILED  ] ${failed} test(s).`);
process.exit(failed || !passed ? 1 : 0);
