/**
 * Text of the PCE on its way out (D27): in an estate where every name, description, user and process holds characters that nobody sees,
 * every tool is called, in ways that succeed and in ways that fail, and everything that leaves is looked at.
 */
import fc from 'fast-check'
import t from 'tap'
import { clipText, escapeText, makeSafe, readEscapes, unescapeText } from '../../domain/text/escape-text.js'

import { tools } from '../../tools/index.js'
import { ANY_CHARACTER } from '../any-character.js'

import { markEverything } from './every-call.js'
import { benchOf, startBench, WEEK, type Json } from './harness.js'

/** Turns the text around, hides a letter in the tag block, takes no room, rings a bell, ends the line, is private, means nothing, is blank. */
const HIDDEN = '\u202E\u{E0041}\u200B\u0007\n\u{F0041}\uFFFE\u2800'
const SHOWN = '⟨U+202E⟩⟨U+E0041⟩⟨U+200B⟩⟨U+0007⟩⟨U+000A⟩⟨U+F0041⟩⟨U+FFFE⟩⟨U+2800⟩'
/** Written out apart from the code under test. Halves of surrogate pairs are matched under `u` only where they stand alone. */
const NEVER =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class -- the point of the expression
  /[\u0000-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\u2800\uE000-\uF8FF\uFE00-\uFE0F\uFEFF\uFFF9-\uFFFB\uFFFE\uFFFF\uD800-\uDFFF\u{E0000}-\u{E01EF}\u{F0000}-\u{10FFFF}]/u

const { estate, shown, PAYMENTS, FLOW, callAll } = markEverything({ raw: HIDDEN, shown: SHOWN })

/** Where in a value, names of properties included, there is a character that nobody sees. */
function findHidden(value: unknown, path = ''): string[] {
  if (typeof value === 'string') {
    // The rows of a CSV text end with both characters, of which the hidden text has one.
    const own = path.endsWith('/csv') ? value.replaceAll('\r\n', '') : value
    return NEVER.test(own) ? [`${path}: ${JSON.stringify(value).slice(0, 200)}`] : []
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [
    ...findHidden(name, `${path} (name)`),
    ...findHidden(inner, `${path}/${name}`),
  ])
}

t.test('no output of any tool hides a character, on success or failure', async (t) => {
  const hidden: string[] = []
  const unequal: string[] = []
  const silent = new Set(tools.map(({ name }) => name))
  const outcome = await callAll(t, (tool, message, payload) => {
    hidden.push(...findHidden(message, tool))
    if (payload.includes('⟨U+202E⟩')) silent.delete(tool)
    const { result, error } = message
    if (result === undefined && error === undefined) return
    hidden.push(...findHidden(result === undefined ? error : JSON.parse(result.content[0].text), `${tool}: text`))
    if (result?.structuredContent !== undefined && JSON.stringify(result.structuredContent) !== result.content[0].text)
      unequal.push(tool)
  })
  // Every tool said something that had to be escaped.
  t.same(
    { ...outcome, hidden, unequal, silent: [...silent] },
    { failed: [], succeeded: [], hidden: [], unequal: [], silent: [] },
  )
})

t.test('escapes progress messages', async (t) => {
  const bench = await startBench(t, { estate })
  const apps = ['billing', 'ledger'].map((app) => ({ app_name: shown(app), env_name: shown('prod') }))
  await bench.ok('ringfence-batch', { apps, dry_run: true })
  const messages = bench.progress.flatMap(({ message }) => message ?? [])
  t.same(findHidden(messages), [])
  t.ok(
    messages.some((message) => message.includes(shown('billing'))),
    'and name the applications',
  )
})

t.test('two labels that look alike stay distinct, and each can be named as shown', async (t) => {
  const bench = await startBench(t)
  const names = [
    'twin',
    'twin\u200B',
    '\u202Etwin',
    'tw\u{E0041}in',
    '⟨U+200B⟩',
    '\u200B⟨U+202E',
    'a⟨U+27E8⟩U+200B⟩',
    'twin\uFEFF',
  ]
  for (const [at, value] of names.entries()) {
    const label = await bench.pce.labels.create({ key: 'app', value })
    const interfaces = [{ name: 'eth0', address: `10.77.0.${at + 1}` }]
    await bench.pce.workloads.create({
      name: `host-${at}`,
      hostname: `host-${at}`,
      interfaces,
      labels: [{ href: label.href }],
    })
  }
  const { labels } = await bench.ok('get-labels', { key: 'app', max_results: 200 })
  const values = labels.map(({ value }: Json) => value as string).filter((value: string) => /twin|⟨/.test(value))
  t.same(values.sort(), [
    'a⟨U+27E8⟩U+27E8⟩U+200B⟩',
    'twin',
    'twin⟨U+200B⟩',
    'twin⟨U+FEFF⟩',
    'tw⟨U+E0041⟩in',
    '⟨U+200B⟩⟨U+202E',
    '⟨U+202E⟩twin',
    '⟨U+27E8⟩U+200B⟩',
  ])
  const found = []
  for (const value of values) {
    const { data } = await bench.ok('get-workloads', { labels: [`app=${value}`] })
    found.push(data.map((row: Json[]) => row[1]))
  }
  t.same(found, [['host-6'], ['host-0'], ['host-1'], ['host-7'], ['host-3'], ['host-5'], ['host-2'], ['host-4']])
})

t.test('an answer with escapes stays within its budget', async (t) => {
  const bench = await startBench(t, { estate })
  const small = benchOf(t, bench.simulator, bench.simulator.url, { budget: 6_000 })
  const sizes: Record<string, number> = {}
  for (const [tool, args] of [
    ['get-workloads', {}],
    ['get-workloads', { detail_level: 'full' }],
    ['get-labels', {}],
    ['get-iplists', {}],
    ['get-services', {}],
    ['get-rulesets', {}],
    ['get-container-workload-profiles', {}],
    ['get-kubernetes-workloads', {}],
    ['get-workload-enforcement-status', {}],
    ['get-traffic-flows', WEEK],
    ['get-traffic-flows-summary', WEEK],
    ['discover-process-egress', { lookback_days: 90 }],
    ['find-unmanaged-traffic', {}],
    ['identify-infrastructure-services', {}],
    ['detect-lateral-movement-paths', PAYMENTS],
    ['explain-flow', FLOW],
    ['suggest-rule', FLOW],
  ] as const)
    sizes[`${tool} ${JSON.stringify(args)}`] = Buffer.byteLength(JSON.stringify(await small.ok(tool, args)))
  t.same(
    Object.entries(sizes).filter(([, bytes]) => bytes > 6_000),
    [],
  )
})

t.test('escapes', async (t) => {
  const part = fc.oneof(
    fc.constantFrom(
      '⟨',
      '⟩',
      'U+',
      '202E',
      '⟨U+202E⟩',
      '⟨U+27E8⟩',
      '\u202E',
      '\ud83d',
      '\ude00',
      '\u{1F600}',
      '…',
      ', ',
    ),
    fc.string({ unit: ANY_CHARACTER }),
    fc.string({ unit: 'binary-ascii' }),
  )
  const anyText = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''))

  await t.test('are reversible and hide nothing', async () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const escaped = escapeText(text)
        return unescapeText(escaped) === text && !NEVER.test(escaped)
      }),
      { numRuns: 2_000 },
    )
  })

  await t.test('clipping keeps as much as allowed and never splits an escape', async () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 60 }), (text, most) => {
        const seen = escapeText(clipText(text, most))
        const whole = escapeText(text)
        if (whole.length <= most) return seen === whole
        const kept = seen.slice(0, -1)
        return seen.length <= most && seen.endsWith('…') && text.startsWith(unescapeText(kept))
      }),
      { numRuns: 2_000 },
    )
  })

  await t.test('arguments mean what answers show, at every depth and in property names', async () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const back = readEscapes(makeSafe(value))
        return JSON.stringify(back) === JSON.stringify(value)
      }),
    )
  })

  await t.test('clip long texts but not identifiers', async (t) => {
    const long = 'x'.repeat(5_000)
    const href = `/orgs/1/labels/${long}`
    t.same(
      makeSafe({ name: long, message: long, next_cursor: long, hrefs: [long], in_row: [href, `${href}, ${href}`] }),
      {
        name: `${'x'.repeat(999)}…`,
        message: `${'x'.repeat(3_999)}…`,
        next_cursor: long,
        hrefs: [long],
        in_row: [href, `${href.slice(0, 999)}…, ${href.slice(0, 999)}…`],
      },
    )
  })

  await t.test('do not copy text that needs none', async (t) => {
    const value = { a: ['plain', { b: 'Grüße' }] }
    t.equal(makeSafe(value), value)
  })
})
