// SPDX-License-Identifier: MIT
// Roles and tokens; payloads that want to be more than text.
import assert from 'node:assert/strict';
import { busy } from './budget.mjs';
import { PATHS } from './pages.mjs';

const signIn = async (page, url, token) => {
	await page.goto(url);
	await page.getByLabel('Token').fill(token);
	await page.getByRole('button', { name: 'Sign in' }).click();
};
const EVIL = ['<script>hacked=1</script>', '"><img src=x onerror=hacked=1>', 'javascript:hacked=1', '</script><script>hacked=1</script>',
	"'-hacked=1-'", '{{hacked=1}}', '<svg onload=hacked=1>', '<!--data-->', '\u202eevil\u0000\u0007\u001b[31m'];

export default [
	['a wrong token is refused, and nothing is shown', async ({ open, place }) => {
		const { url } = await place('guarded');
		const page = await open();
		await signIn(page, url, 'wrong-token-0123456789');
		await page.getByRole('alert').getByText(/\w/).waitFor();
		assert.equal(await page.locator('#nav a').count(), 0);
		assert.ok(!(await page.content()).includes('hunter2'));
	}],
	['an operator signs in, sees payloads and verbs, and signs out', async ({ open, place }) => {
		const { url, ids } = await place('guarded');
		const page = await open();
		await signIn(page, `${url}messages/${ids[0]}`, 'operator-token-0123456789');
		await page.getByText('hunter2').waitFor();
		await page.getByRole('button', { name: 'Retry…' }).waitFor();
		await page.getByRole('button', { name: /Sign out/ }).click();
		await page.getByLabel('Token').waitFor();
	}],
	['a viewer sees no verb on any page, and masked payloads', async ({ open, place }) => {
		const { url, ids } = await place('guarded');
		const page = await open();
		await signIn(page, url, 'viewer-token-0123456789');
		await page.locator('.card').first().waitFor();
		for (const path of [...PATHS, `messages/${ids[0]}`]) {
			await page.goto(url + path);
			await page.locator('h1').waitFor();
			assert.equal(await page.getByRole('button', { name: /^(Retry|Skip|Discard|Run now)/ }).count(), 0, path);
			assert.equal(await page.locator('main [type=checkbox]').count(), 0, path);
		}
		assert.match(await page.locator('.payload').first().innerText(), /"order": 7/);
		assert.ok(!(await page.content()).includes('hunter2'));
		await page.keyboard.press('r');
		assert.equal(await page.getByRole('dialog').count(), 0);
	}],
	['a session that ends leads back to the sign-in, below a path of a proxy too', async ({ open, place }) => {
		const { url } = await place('guarded');
		assert.match(url, /\/ops\/outbox\/$/);
		const page = await open();
		await signIn(page, url, 'viewer-token-0123456789');
		await page.locator('#nav').getByText('Audit').click();
		await page.waitForURL(`${url}audit`);
		await page.context().clearCookies();
		await page.locator('#nav').getByText('Keys').click();
		await page.getByLabel('Token').waitFor();
	}],
	['hostile keys, types, headers, payloads and errors stay text', async ({ open, place }) => {
		const p = await place('little', true);
		p.push(EVIL.flatMap((text, i) => [{ aggregate_id: `good${i}`, event_type: 'OrderPlaced' }, { aggregate_id: `fine${i}`,
			event_type: 'OrderPlaced' }, { aggregate_id: `${i}`, partition_key: text.replaceAll('\0', '') || 'x', event_type: 'Hostile',
			correlation_id: text.replace(/[\0-\x1f]/g, ''), headers: { x: text }, payload: { [text]: text } }]));
		await p.settled();
		const page = await open();
		for (const path of [...PATHS, 'failures?by=key', 'messages?state=dead', 'failures?by=type']) {
			await page.goto(p.url + path);
			await page.locator('h1').waitFor();
			assert.equal(await page.evaluate(() => window.hacked), undefined, path);
			assert.equal(await page.locator('main img, main script, main svg[onload]').count(), 0, path);
		}
		const ids = JSON.parse(p.outbox('failures', '--json')).groups.find((g) => g.event_type === 'Hostile').sample;
		for (const id of ids) {
			await page.goto(`${p.url}messages/${id}`);
			await page.locator('.payload').first().waitFor();
			assert.equal(await page.evaluate(() => window.hacked), undefined);
		}
		await page.goto(`${p.url}messages`);
		assert.match(await page.locator('main').innerText(), /\\u202eevil.*␛\[31m/);
	}],
	['numbers, escapes and repeated names appear exactly as they are stored', async ({ open, place }) => {
		const p = await place('little', true);
		const payload = '{"big":9007199254740993,"huge":1e400,"tiny":-0.0,"twice":1,"twice":2,"esc":"\\u0041\\/<b>","deep":[[],{},[1,[2]]],"no":null}';
		const [id] = p.push([{ line: `{"aggregate_type":"order","event_type":"Exact","payload":${payload}}` }]);
		const page = await open();
		await page.goto(`${p.url}messages/${id}`);
		const shown = await page.locator('.payload').first().innerText();
		for (const part of ['"big": 9007199254740993,', '"huge": 1e400,', '"tiny": -0.0,', '"twice": 1,', '"twice": 2,',
			'"esc": "\\u0041\\/<b>",', '[],', '{},', '"no": null'])
			assert.ok(shown.includes(part), `${part} in ${shown}`);
		assert.equal(shown.replace(/\s/g, ''), payload.replace(/\s/g, ''));
		await page.getByRole('link', { name: 'raw' }).click();
		await page.waitForFunction((text) => document.querySelector('.payload').innerText === text, payload);
	}],
	['a payload of 5 MB shows its beginning at once, and is downloaded whole', async ({ open, place }) => {
		const p = await place('little', true);
		const payload = JSON.stringify({ list: Array.from({ length: 140_000 }, (_, i) => ({ n: i, text: 'some text of it' })) });
		assert.ok(payload.length > 5e6);
		const [id] = p.push([{ line: `{"aggregate_type":"order","event_type":"Large","payload":${payload}}` }, { aggregate_id: '5',
			event_type: 'OrderPlaced', payload: { control: '\u0000\u0007\u001b[31m\n' } }]);
		const page = await open();
		await page.goto(`${p.url}messages`);
		const started = Date.now();
		await page.locator(`a[href*="${id}"]`).click();
		await page.getByText('Only the beginning is shown').waitFor();
		const took = Date.now() - started;
		assert.ok(took < 2000 || busy(), `${took} ms`);
		const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()]);
		const file = await download.createReadStream();
		let size = 0;
		for await (const part of file) size += part.length;
		assert.equal(size, payload.length);
	}],
	['bytes that are no text are shown as hex', async ({ open, place }) => {
		const { url, ids } = await place('little');
		const page = await open();
		await page.route('**/api/v1/messages/*', async (route) => {
			const answer = await (await route.fetch()).json();
			Object.assign(answer.message, { payload: null, payload_base64: '/wABG1sxbQ==', payload_bytes: 7, payload_json: false });
			await route.fulfill({ json: answer });
		});
		await page.goto(`${url}messages`);
		await page.locator(`a[href*="${ids[0]}"]`).click();
		await page.getByText('\\u0001').or(page.getByText('␁␛[1m')).waitFor();
		await page.getByRole('link', { name: 'hex' }).click();
		await page.getByText('ff 00 01 1b 5b 31 6d').waitFor();
	}],
];
