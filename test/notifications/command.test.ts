/** The commands of docs/notifications.md, as an operator pastes them: a secret is made, and the receiver tried with it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { emptyFolder, startCommand } from '../docs/commands.js'
import { messagesOf } from '../log-lines.js'
import { compiled } from '../suite-folder.js'
import { type Receiver, SECRET, startReceiver, status } from './receiver.js'

const settings = (receiver: Receiver, secret: string) => ({
  MCP_PCE_MODE: 'shared',
  PCE_HOST: 'pce.example.com',
  API_KEY: 'api_1',
  API_SECRET: 'secret',
  MCP_PUBLIC_URL: 'https://mcp.example.com',
  MCP_OAUTH_ISSUER: 'https://login.example.com',
  MCP_OAUTH_JWKS_URL: 'https://login.example.com/keys',
  MCP_OAUTH_AUDIENCE: 'https://mcp.example.com',
  MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 8).toString('base64'),
  MCP_ROLE_DEFAULT: 'reader',
  MCP_NOTIFY_WEBHOOK_URL: receiver.url,
  MCP_NOTIFY_SECRET: secret,
})

/** Runs the block of the page; resolves with the exit status, the secret that it printed, and the messages on standard error. */
async function run(t: Test, env: Record<string, string>) {
  const cwd = emptyFolder(t)
  const bin = join(cwd, 'bin')
  mkdirSync(bin)
  const program = `#!/bin/sh\nexec "${process.execPath}" "${compiled('programs/http.ts')}" "$@"\n`
  writeFileSync(join(bin, 'svc-mcp-http'), program, { mode: 0o755 })
  const PATH = `${bin}:${process.env.PATH}`
  const started = startCommand(t, 'docs/notifications.md#notifications', { cwd, env: { ...env, PATH } })
  const { code, stdout, stderr } = await started.ended
  return { code, secret: stdout.trim(), messages: messagesOf(stderr).filter((line) => line.startsWith('The receiver')) }
}

t.test('a secret is made, and a receiver that accepts the test is said to have it', async (t) => {
  const receiver = await startReceiver(t)
  const env = settings(receiver, `whsec_${SECRET.toString('base64')}`)
  const good = await run(t, { ...env, NODE_EXTRA_CA_CERTS: receiver.certPath })
  const [message, ...others] = receiver.received
  t.same(others, [])
  t.same([message?.type, message?.isSigned], ['test', true])
  t.equal(message?.data.text, 'A test of notifications from https://mcp.example.com. Nothing has happened.')
  const where = `The receiver at 127.0.0.1:${receiver.port}`
  t.same([good.code, good.messages], [0, [`${where} answered 204. It has the message ${message?.id}`]])

  receiver.answer = status(401)
  const refused = await run(t, { ...env, MCP_NOTIFY_SECRET: good.secret, NODE_EXTRA_CA_CERTS: receiver.certPath })
  t.same([refused.code, refused.messages], [1, [`${where} answered 401`]])
  t.equal(receiver.received[1]?.isSigned, false, 'the new secret was used')

  const untrusted = await run(t, env)
  t.same([untrusted.code, untrusted.messages], [1, [`${where} did not answer: DEPTH_ZERO_SELF_SIGNED_CERT`]])
  t.equal(receiver.received.length, 2)
})
