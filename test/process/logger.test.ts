/** The log of the programs: what never gets into it, whoever writes the line. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { alwaysSaid, createLogger } from '../../programs/process/create-logger.js'
import { describeLine } from '../../programs/process/describe-line.js'
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

t.test('how a start goes is said at any level', async (t) => {
  for (const level of ['silent', 'error', 'trace']) {
    const lines: string[] = []
    const log = createLogger(level, { write: (line) => lines.push(line) })
    alwaysSaid(log).info({ version: '1.2.3' }, 'starting')
    t.same(
      lines.map((line) => ({ ...(JSON.parse(line) as object), time: null })),
      [{ level: 30, time: null, version: '1.2.3', msg: 'starting' }],
      level,
    )
  }
})

t.test('a name cannot hide anything in a line, and is read back as it is', async (t) => {
  const lines: string[] = []
  const name = 'pay\u2028\u2029\u202e\u200b\u0085\u{e0041}\nend'
  createLogger('info', { write: (line) => lines.push(line) }).warn({ name, err: new Error(name) }, name)
  t.equal(lines.length, 1)
  t.match(lines[0], /^[\x20-\x7E]+\n$/)
  partial(t, JSON.parse(lines[0]!), { name, msg: name, err: { message: name } })
})

t.test('a line at a terminal', async (t) => {
  const time = '2026-06-15T12:00:01.234Z'
  const cases: [object | string, string][] = [
    [
      { level: 30, time, msg: 'request', path: '/mcp', ms: 3.5, client: 'a b' },
      '12:00:01 INFO  request path=/mcp ms=3.5 client="a b"\n',
    ],
    [{ level: 60, time, msg: 'first\nsecond' }, '12:00:01 FATAL first\n    second\n'],
    [{ level: 60, time, msg: 'a fault', remedy: 'Mend it.' }, '12:00:01 FATAL a fault\n    Mend it.\n'],
    [
      { level: 50, time, msg: 'failed', err: { message: 'why', stack: 'Error: why\n    at here' } },
      '12:00:01 ERROR failed\n    Error: why\n        at here\n',
    ],
    [
      { level: 40, time, msg: 'odd \u001b[2J\u202e\u2028\u2029\u{e0041}\ufe0f', name: '\u001b]0;x' },
      '12:00:01 WARN  odd \uFFFD[2J\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD name="\\u001b]0;x"\n',
    ],
    ['no line of ours\n', 'no line of ours\n'],
  ]
  for (const [line, shown] of cases)
    t.equal(describeLine(typeof line === 'string' ? line : JSON.stringify(line)), shown)
})
