// SPDX-License-Identifier: MIT
// How it looks: narrow, zoomed, dark and light; and what axe says of it.
import assert from 'node:assert/strict';
import { PATHS } from './pages.mjs';

async function pathsOf(p) {
	const groups = JSON.parse(p.outbox('failures', '--json')).groups;
	return [...PATHS, `messages/${groups[0].sample[0]}`, `failures?open=${groups[0].group}`, '?table=1'];
}
const axeOn = (kind, options) => async ({ open, place, violations }) => {
	const p = await place(kind);
	const page = await open(options);
	for (const path of kind === 'none' ? PATHS : await pathsOf(p)) {
		await page.goto(p.url + path);
		await page.locator('h1').waitFor();
		assert.deepEqual(await violations(page), [], path || 'overview');
	}
};
const fits = (options) => async ({ open, place }) => {
	const p = await place('much');
	const page = await open(options);
	for (const path of await pathsOf(p)) {
		await page.goto(p.url + path);
		await page.locator('h1').waitFor();
		const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
		assert.ok(content <= window, `${path}: ${content} in ${window}`);
	}
};

export default [
	['axe finds nothing in light', axeOn('much', { colorScheme: 'light' })],
	['axe finds nothing in dark', axeOn('much', { colorScheme: 'dark' })],
	['axe finds nothing on a narrow screen', axeOn('much', { viewport: { width: 320, height: 640 } })],
	['axe finds nothing without data', axeOn('none', {})],
	['axe finds nothing in dialogs and the sign-in', async ({ open, place, violations }) => {
		const page = await open();
		await page.goto((await place('guarded')).url);
		assert.deepEqual(await violations(page), []);
		await page.goto(`${(await place('much')).url}failures`);
		await page.keyboard.press('?');
		assert.deepEqual(await violations(page), []);
		await page.keyboard.press('Escape');
		await page.locator('main tbody input').first().check();
		await page.getByRole('button', { name: 'Discard 120…' }).click();
		await page.getByLabel('Type 120').waitFor();
		assert.deepEqual(await violations(page), []);
	}],
	['nothing scrolls sideways at 320 pixels', fits({ viewport: { width: 320, height: 640 } })],
	['nothing scrolls sideways at 200 % zoom', fits({ viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 })],
	['colours follow the system, and the button overrides it', async ({ open, place }) => {
		const { url } = await place('little');
		const dark = async (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor === 'rgb(17, 20, 26)');
		const page = await open({ colorScheme: 'dark' });
		await page.goto(url);
		assert.ok(await dark(page));
		await page.emulateMedia({ colorScheme: 'light' });
		assert.ok(!await dark(page));
		await page.getByRole('button', { name: 'Auto' }).click();
		assert.ok(await dark(page));
		await page.reload();
		assert.ok(await dark(page));
		await page.getByRole('button', { name: 'Dark' }).click();
		await page.emulateMedia({ colorScheme: 'dark' });
		assert.ok(!await dark(page));
	}],
	['states are told by shape and word, not by colour alone', async ({ open, place }) => {
		const { url } = await place('much');
		const page = await open();
		await page.goto(`${url}keys?reader=orders`);
		const shapes = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll('td .st')].map((e) => [e.innerText,
			getComputedStyle(e, '::before').content])));
		assert.ok(Object.keys(shapes).length >= 2, JSON.stringify(shapes));
		assert.equal(new Set(Object.values(shapes)).size, Object.keys(shapes).length);
	}],
];
