/** The log of the programs: what never gets into it, whoever writes the line. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createLogger } from '../../process/create-logger.js'
import { partial } from '../partial.js'

t.test('fields that are named like secrets are blanked, those of a logged error as well', async (t) => {
  const secrets = Object.fromEntries(
    ['authorization', 'api_key', 'api_secret', 'token', 'confirm_token'].map((name) => [name, `canary ${name}`]),
  )
  const blank = Object.fromEntries(Object.keys(secrets).map((name) => [name, '[redacted]']))
  const written = t.capture(process.stderr, 'write', () => true)
  createLogger('info').warn(
    { tool: 'get-labels', ...secrets, err: Object.assign(new Error('failed'), secrets) },
    'done',
  )
  await nextTurn()
  const lines = written().map(({ args }) => String(args[0]))
  written.restore()
  t.equal(lines.length, 1)
  partial(t, JSON.parse(lines[0]!), { msg: 'done', tool: 'get-labels', ...blank, err: { message: 'failed', ...blank } })
  t.equal(lines[0]!.includes('canary'), false)
})
