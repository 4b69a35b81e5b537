/** The relay of docs/notifications.md, started as the page says, between the server's own sender and a chat system that is none. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { signMessage } from '../../notifications/sign-message.js'
import type { Json } from '../contract/authenticated-service.js'
import { emptyFolder, readPage, startCommand } from '../docs/commands.js'
import { freePort } from '../free-port.js'
import { guardOf, SECRET, startReceiver } from './receiver.js'
import { until } from '../until.js'

const OLD = Buffer.alloc(24, 6)
const secretOf = (key: Buffer) => `whsec_${key.toString('base64')}`

async function startRelay(t: Test, chat: string) {
  const [, code] = /\n```js\n(\/\/ relay\.mjs:[\s\S]*?)\n```\n/.exec(readPage('docs/notifications.md'))!
  const system = { status: 200, received: [] as Json[] }
  const server = createServer((request, answer) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      system.received.push(JSON.parse(body))
      answer.writeHead(system.status).end('ok')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const cwd = emptyFolder(t)
  const folder = join(cwd, 'relay')
  mkdirSync(folder)
  // The certificate is that of a receiver of the tests.
  const { certPath, post } = await startReceiver(t)
  writeFileSync(join(cwd, 'relay.mjs'), code!)
  for (const name of ['cert.pem', 'key.pem']) copyFileSync(join(dirname(certPath), name), join(folder, name))
  writeFileSync(join(folder, 'secret'), `${secretOf(OLD)}\n${secretOf(SECRET)}\n`)
  writeFileSync(join(folder, 'chat-url'), `http://127.0.0.1:${(server.address() as AddressInfo).port}/services\n`)
  const port = await freePort()
  startCommand(t, 'docs/notifications.md#a-relay-for-slack-and-microsoft-teams', {
    cwd,
    own: { '/etc/relay': folder, 'CHAT=slack': `CHAT=${chat}`, '8443': String(port) },
  })
  const send = post({ url: `https://127.0.0.1:${port}/`, guard: guardOf('127.0.0.1', port) })
  await until(async () => 'status' in (await send('{}', {})))
  /** The status that the relay answers to a message. */
  const tell = async (data: object, { id = `msg_${randomUUID()}`, key = SECRET, age = 0, alter = '' } = {}) => {
    const body = JSON.stringify({ type: 'approval.waiting', timestamp: new Date().toISOString(), data })
    const headers = signMessage(key, { id, body }, Math.floor(Date.now() / 1000) - age)
    const result = await send(body + alter, headers)
    return 'status' in result ? result.status : result.failure
  }
  return { system, tell }
}

const DATA = {
  text: 'provision-policy of <!channel> & ann waits for approval.',
  approval_url: 'https://mcp.example.test/approve/a',
}

t.test('Slack: verified, escaped, once, and again after a failure', async (t) => {
  const { system, tell } = await startRelay(t, 'slack')
  t.equal(await tell(DATA, { id: 'msg_1' }), 204)
  const text =
    'provision-policy of &lt;!channel&gt; &amp; ann waits for approval.\n<https://mcp.example.test/approve/a|Open>'
  t.same(system.received, [{ text }])
  t.equal(await tell(DATA, { id: 'msg_1' }), 204)
  t.equal(system.received.length, 1, 'a repetition is accepted, and not posted')
  t.equal(await tell(DATA, { key: OLD }), 204, 'another secret is accepted while it is changed')
  t.equal(await tell(DATA, { key: Buffer.alloc(32, 1) }), 401)
  t.equal(await tell(DATA, { alter: ' ' }), 401, 'the body is signed')
  t.equal(await tell(DATA, { age: 310 }), 401)
  t.equal(await tell(DATA, { age: -310 }), 401)
  t.equal(await tell({ text: 'x'.repeat(70_000) }), 413)
  t.equal(system.received.length, 2)
  system.status = 500
  t.equal(await tell(DATA, { id: 'msg_2' }), 502)
  system.status = 200
  t.equal(await tell({ text: 'The audit log cannot be used.' }, { id: 'msg_2' }), 204)
  t.same(system.received.at(-1), { text: 'The audit log cannot be used.' })
})

t.test('Microsoft Teams: a card that shows the text as it is, with a link', async (t) => {
  const { system, tell } = await startRelay(t, 'teams')
  system.status = 202
  t.equal(await tell({ ...DATA, summary: 'Makes [a](b) active' }), 204)
  t.equal(await tell({ text: 'Nothing to open.' }), 204)
  const card = (text: string, actions: object[]) => ({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [{ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text }] }],
          actions,
        },
      },
    ],
  })
  t.same(system.received, [
    card(`${DATA.text}\nMakes [a](b) active`, [{ type: 'Action.OpenUrl', title: 'Open', url: DATA.approval_url }]),
    card('Nothing to open.', []),
  ])
})
