/** The commands of docs/notifications.md, as an operator pastes them: a secret is made, and the receiver tried with it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readStateFile } from '../../config/index.js'
import { createFileAudit } from '../../plugins/dispatcher/audit-log.js'
import { forgetUser } from '../../programs/composition/forget-user.js'
import { revokeUser } from '../../programs/composition/revoke-user.js'
import { runTold } from '../../programs/composition/notify-command.js'
import { openState } from '../../storage/state/open-state.js'
import { bundleProgram } from '../bundle-program.js'
import { emptyFolder, startCommand } from '../docs/commands.js'
import { messagesOf } from '../log-lines.js'
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
  const program = `#!/bin/sh\nexec "${process.execPath}" "${bundleProgram('http')}" "$@"\n`
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

t.test('what a command does about a person is told by the servers, which share its state', async (t) => {
  const path = join(emptyFolder(t), 'state.db')
  const now = () => 1_800_000_000_000
  const state = openState(path, { now, variable: 'MCP_STATE_PATH' })
  t.teardown(() => state.close())
  const configOf = (env: Record<string, string>) =>
    readStateFile({ MCP_PCE_MODE: 'shared', MCP_STATE_PATH: path, MCP_PUBLIC_URL: 'https://mcp.example.test', ...env })
  const owner = { iss: 'https://idp.example.test/', sub: 'ann' }
  const commands: Record<string, typeof forgetUser> = {
    'forget-user': forgetUser,
    'revoke-user': (config, of, parts) => revokeUser(config, of, {}, parts),
  }
  const types = { 'forget-user': 'person.forgotten', 'revoke-user': 'person.revoked' }
  for (const command of ['forget-user', 'revoke-user'] as const) {
    const run = (env: Record<string, string>) => {
      const config = configOf(env)
      const open = () => createFileAudit(`${path}.audit`)
      const parts = { osUser: 'root', now }
      return runTold(config, open, (openAudit) => commands[command]!(config, owner, { openAudit, ...parts }), now)
    }
    t.equal((await run({})).ok, true)
    t.equal((await state.outbox.look()).waiting, 0, 'without a receiver nobody is told')
    t.equal((await run({ MCP_NOTIFY_WEBHOOK_URL_FILE: '/run/secrets/url', MCP_REPLICA_ID: 'desk' })).ok, true)
    t.equal((await state.outbox.look()).waiting, 1)
    const message = await state.outbox.take('server', 40_000)
    const { type, data } = JSON.parse(message!.body) as { type: string; data: Record<string, unknown> }
    const { request_id: requestId, ...facts } = data
    t.type(requestId, 'string')
    t.same(
      [type, facts],
      [
        types[command],
        {
          text: `root ran ${command} for ann: success.`,
          server: 'https://mcp.example.test',
          replica: 'desk',
          person: owner,
          command,
          outcome: 'success',
          os_user: 'root',
        },
      ],
    )
    await state.outbox.remove(message!.id)
  }
})
