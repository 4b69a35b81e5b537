/**
 * Text of the PCE on its way out (D27): in an estate where every name, description, user and process holds characters that nobody sees,
 * every tool is called, in ways that succeed and in ways that fail, and everything that leaves is looked at.
 */
import fc from 'fast-check'
import t from 'tap'
import { clipText, escapeText, makeSafe, readEscapes, unescapeText } from '../../domain/text/escape-text.js'
import { generateEstate } from '../../pce-simulator/estate/generate.js'
import type { Estate } from '../../pce-simulator/model.js'
import { tools } from '../../tools/index.js'
import { ANY_CHARACTER } from '../any-character.js'
import { startConfirming } from '../confirm/harness.js'
import { parseEvents } from '../contract/insecure-app.js'
import { benchOf, startBench, WEEK, type Json } from './harness.js'

/** Turns the text around, hides a letter in the tag block, takes no room, rings a bell, ends the line, is private, means nothing, is blank. */
const HIDDEN = '\u202E\u{E0041}\u200B\u0007\n\u{F0041}\uFFFE\u2800'
const SHOWN = '⟨U+202E⟩⟨U+E0041⟩⟨U+200B⟩⟨U+0007⟩⟨U+000A⟩⟨U+F0041⟩⟨U+FFFE⟩⟨U+2800⟩'
/** Written out apart from the code under test. Halves of surrogate pairs are matched under `u` only where they stand alone. */
const NEVER =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class -- the point of the expression
  /[\u0000-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\u2800\uE000-\uF8FF\uFE00-\uFE0F\uFEFF\uFFF9-\uFFFB\uFFFE\uFFFF\uD800-\uDFFF\u{E0000}-\u{E01EF}\u{F0000}-\u{10FFFF}]/u

/** Free text of the estate, by the names of its properties. */
const WRITTEN_BY_PEOPLE = new Set([
  'name',
  'value',
  'hostname',
  'description',
  'username',
  'full_name',
  'process_name',
  'user',
  'user_name',
  'fqdn',
  'windows_service_name',
  'win_service_name',
  'service_name',
  'namespace',
  'os_detail',
  'data_center',
])
const BUILT_IN = new Set(['All Services', 'Any (0.0.0.0/0 and ::/0)', 'Default'])

const taint = (value: unknown, key = ''): unknown => {
  if (typeof value === 'string')
    return WRITTEN_BY_PEOPLE.has(key) && value !== '' && !BUILT_IN.has(value) ? `${value}${HIDDEN}` : value
  if (Array.isArray(value)) return value.map((item) => taint(item, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, taint(inner, name)]))
}
const estate = taint(generateEstate({ seed: 3, workloads: 80, flows: 800, orgId: 1 })) as Estate

/** A name as answers show it, which is how a client repeats it. */
const shown = (name: string) => `${name}${SHOWN}`
const PAYMENTS = { app_name: shown('payments'), env_name: shown('prod') }
const FLOW = { source: `app=${shown('ordering')}`, destination: `app=${shown('payments')}`, port: 8443, proto: 'tcp' }
/** What no object is called, so that errors say which there are. */
const NOBODY = `payment${HIDDEN}`

/** Calls of every tool: what succeeds, and what is refused for its arguments. In this order, since some undo others. */
const callsOf = (ids: Record<'workload' | 'rule' | 'deny' | 'profile', string>): [string, object[], object[]][] => [
  ['check-pce-connection', [{}], [{ [NOBODY]: 1 }]],
  ['check-pce-credentials-status', [{}], [{ [NOBODY]: 1 }]],
  ['delete-pce-credentials', [], [{}, { [NOBODY]: 1 }]],
  [
    'register-pce-credentials',
    [],
    [{ pce_host: NOBODY, pce_port: 1, pce_org_id: 1, api_key: 'k', api_secret: 's' }, { [NOBODY]: 1 }],
  ],
  ['get-server-changelog', [{}], [{ [NOBODY]: 1 }]],
  [
    'get-workloads',
    [{ detail_level: 'full', max_results: 5 }, { labels: [`app=${shown('payments')}`] }],
    [{ labels: [`app=${NOBODY}`] }, { labels: [NOBODY] }, { labels: [`${NOBODY}=x`] }],
  ],
  ['get-labels', [{}, { value: shown('payments') }], [{ key: 7 }]],
  ['get-vens', [{}, { labels: [`app=${shown('payments')}`] }], [{ labels: [NOBODY] }]],
  ['ven-health-report', [{ detail_level: 'full' }], [{ labels: [NOBODY] }]],
  ['find-unlabelled-workloads', [{}], [{ missing: [NOBODY] }]],
  [
    'label-workloads',
    [
      { workloads: [ids.workload], set: [`app=${shown('payments')}`], dry_run: true },
      { workloads: [ids.workload], set: [`app=${shown('payments')}`] },
      { csv: `name,app\n"${ids.workload}","${shown('billing')}"\n` },
    ],
    [
      { workloads: [NOBODY], set: [`app=${shown('payments')}`] },
      { workloads: [ids.workload], set: [`app=${NOBODY}`] },
      { csv: `name,app\n"${NOBODY}",x\n` },
    ],
  ],
  ['get-iplists', [{}], [{ cursor: NOBODY }]],
  ['get-ip-list-matches', [{ address: '10.0.0.0/8' }, { fqdn: `a${HIDDEN}` }], [{ address: NOBODY }]],
  ['get-label-groups', [{}], [{ label: `app=${NOBODY}` }, { cursor: NOBODY }]],
  ['get-services', [{}], [{ proto: NOBODY }, { policy_version: NOBODY }]],
  ['get-rulesets', [{}], [{ cursor: NOBODY }]],
  ['get-pairing-profiles', [{}], [{ cursor: NOBODY }]],
  ['get-container-clusters', [{}], [{ cursor: NOBODY }]],
  ['get-container-workload-profiles', [{}], [{ cluster_href: NOBODY }]],
  ['get-kubernetes-workloads', [{}], [{ cluster_href: NOBODY }]],
  ['get-workload-enforcement-status', [{}, PAYMENTS], [{ app_name: NOBODY }]],
  ['get-traffic-flows', [WEEK], [{ ...WEEK, include_sources: [NOBODY] }]],
  ['get-traffic-flows-summary', [WEEK], [{ ...WEEK, include_sources: [`app=${NOBODY}`] }]],
  ['discover-process-egress', [{ lookback_days: 90 }], [{ include_sources: [NOBODY] }]],
  ['find-redundant-rules', [{}], [{ rule_set: NOBODY }]],
  ['find-rules', [{}, { text: shown('p') }], [{ actor: `iplist:${NOBODY}` }]],
  ['find-unused', [{}], [{ kinds: [NOBODY] }]],
  ['find-unmanaged-traffic', [{}], [{ direction: NOBODY }]],
  ['identify-infrastructure-services', [{}], [{ top_n: NOBODY }]],
  ['detect-lateral-movement-paths', [PAYMENTS], [UNKNOWN]],
  ['enforcement-readiness', [PAYMENTS], [UNKNOWN]],
  ['get-policy-coverage-report', [PAYMENTS], [UNKNOWN]],
  ['compliance-check', [{ framework: 'general', ...PAYMENTS }], [UNKNOWN]],
  [
    'explain-flow',
    [FLOW, { ...FLOW, source: ids.workload }],
    [
      { ...FLOW, source: NOBODY },
      { ...FLOW, proto: NOBODY },
    ],
  ],
  ['suggest-rule', [FLOW, { ...FLOW, source: ids.workload }], [{ ...FLOW, destination: [`app=${NOBODY}`] }]],
  ['create-label', [{ key: 'app', value: 'new' }], [{ key: 'app', value: shown('payments') }]],
  [
    'update-label',
    [{ key: 'app', value: shown('media'), new_value: 'media' }],
    [{ key: 'app', value: NOBODY, new_value: 'x' }],
  ],
  [
    'delete-label',
    [{ key: 'app', value: shown('wiki'), dry_run: true }],
    [
      { key: 'app', value: shown('payments') },
      { key: NOBODY, value: 'x' },
    ],
  ],
  [
    'create-workload',
    [
      { ...PRINTER, labels: [`app=${shown('payments')}`], dry_run: true },
      { ...PRINTER, labels: [`app=${shown('payments')}`] },
    ],
    [
      { ...PRINTER, name: shown('printer') },
      { ...PRINTER, labels: [{ href: NOBODY }] },
      { ...PRINTER, labels: [`app=${NOBODY}`] },
    ],
  ],
  [
    'update-workload',
    [
      { name: ids.workload, description: `seen${SHOWN}` },
      { name: ids.workload, description: 'x', dry_run: true },
    ],
    [
      { name: NOBODY, description: 'x' },
      { name: ids.workload, new_name: shown('x') },
    ],
  ],
  ['delete-workload', [{ name: ids.workload, dry_run: true }, { name: ids.workload }], [{ name: NOBODY }]],
  [
    'create-iplist',
    [{ name: 'list', ip_ranges: [{ from_ip: '10.0.0.1', description: HIDDEN }] }],
    [{ name: NOBODY, ip_ranges: [{ from_ip: '10.0.0.1' }] }],
  ],
  [
    'update-iplist',
    [
      { name: shown('Branch offices'), description: `x${HIDDEN}` },
      { name: shown('Branch offices'), description: 'y', dry_run: true },
    ],
    [{ name: NOBODY, description: 'x' }],
  ],
  [
    'edit-ip-list-ranges',
    [
      { name: shown('Branch offices'), add_ranges: [{ from_ip: '192.0.2.1', description: `x${HIDDEN}` }] },
      { name: shown('Branch offices'), remove_ranges: ['192.0.2.1'], dry_run: true },
    ],
    [
      { name: NOBODY, add_ranges: ['192.0.2.1'] },
      { name: shown('Branch offices'), remove_fqdns: [NOBODY] },
    ],
  ],
  ['delete-iplist', [{ name: shown('Package mirrors') }], [{ name: NOBODY }]],
  [
    'create-service',
    [{ name: 'service', description: HIDDEN, service_ports: [{ port: 1, proto: 'tcp' }] }],
    [{ name: NOBODY, service_ports: [{ port: 1, proto: 'tcp' }] }],
  ],
  [
    'update-service',
    [
      { name: shown('Telnet'), description: 'x' },
      { name: shown('Telnet'), description: 'y', dry_run: true },
    ],
    [{ name: NOBODY, description: 'x' }],
  ],
  ['delete-service', [{ name: shown('idle') }], [{ name: NOBODY }, { name: shown('SSH') }]],
  [
    'create-ruleset',
    [{ name: 'rules', scopes: [[`app=${shown('payments')}`]] }],
    [
      { name: 'rules', scopes: [[`app=${NOBODY}`]] },
      { name: shown('rules'), scopes: [] },
    ],
  ],
  [
    'update-ruleset',
    [
      { name: shown('ledger | prod'), description: 'x' },
      { name: shown('ledger | prod'), description: 'y', dry_run: true },
    ],
    [{ name: NOBODY, description: 'x' }],
  ],
  [
    'create-deny-rule',
    [{ ...DENY, ruleset_name: shown('ledger | prod') }],
    [
      { ...DENY, ruleset_name: NOBODY },
      { ...DENY, ruleset_name: shown('ledger | prod'), ingress_services: [{ service: NOBODY }] },
    ],
  ],
  [
    'create-rule',
    [{ ...DENY, ruleset_name: shown('ledger | prod') }],
    [
      { ...DENY, ruleset_name: NOBODY },
      { ...DENY, ruleset_name: shown('ledger | prod'), consumers: [`labelgroup:${NOBODY}`] },
    ],
  ],
  [
    'update-sec-rule',
    [{ href: ids.rule, ingress_services: [{ service: shown('SSH') }] }],
    [{ href: ids.rule, ingress_services: [{ service: NOBODY }] }],
  ],
  [
    'update-deny-rule',
    [{ href: ids.deny, consumers: [`app=${shown('billing')}`] }],
    [{ href: ids.deny, consumers: [`app=${NOBODY}`] }],
  ],
  ['delete-deny-rule', [{ href: ids.deny }], [{ href: NOBODY }]],
  ['delete-sec-rule', [{ href: ids.rule }], [{ href: NOBODY }]],
  ['delete-ruleset', [{ name: shown('catalog | prod') }], [{ name: NOBODY }]],
  [
    'update-container-workload-profile',
    [{ profile_href: ids.profile, assign_labels: [`app=${shown('billing')}`] }],
    [{ profile_href: ids.profile, assign_labels: [`app=${NOBODY}`] }],
  ],
  ['create-ringfence', [{ ...PAYMENTS, dry_run: true }, PAYMENTS], [UNKNOWN]],
  ['compare-draft-active', [{}], [{ cursor: NOBODY }]],
  [
    'ringfence-batch',
    [{ apps: [{ ...PAYMENTS, app_name: shown('billing') }, UNKNOWN] }],
    [{ apps: [{ app_name: NOBODY }] }],
  ],
  [
    'preview-enforcement-change',
    [
      { ...PAYMENTS, enforcement_mode: 'full' },
      { ...PAYMENTS, enforcement_mode: 'idle' },
    ],
    [
      { ...UNKNOWN, enforcement_mode: 'full' },
      { workloads: [NOBODY], enforcement_mode: 'full' },
    ],
  ],
  [
    'set-enforcement-mode',
    [
      { ...PAYMENTS, enforcement_mode: 'selective', dry_run: true },
      { ...PAYMENTS, enforcement_mode: 'selective' },
    ],
    [
      { ...UNKNOWN, enforcement_mode: 'full' },
      { workloads: [ids.workload], enforcement_mode: 'full' },
    ],
  ],
  ['provision-policy', [{ change_description: `because${SHOWN}` }], [{ change_description: 'x', hrefs: [NOBODY] }]],
  ['get-events', [{}], [{ cursor: NOBODY }]],
  [
    'list-policy-versions',
    [{}, { text: `because${SHOWN}` }, { author: NOBODY }],
    [{ cursor: NOBODY }, { since: NOBODY }],
  ],
  ['compare-policy-versions', [{ from: 1 }, { from: 1, to: 'draft' }], [{ from: 1, cursor: NOBODY }, { from: 999 }]],
  [
    'who-changed',
    [{ kind: 'label', name: `app=${shown('payments')}` }, { application: `app=${shown('payments')}` }],
    [{ kind: 'rule_set', name: NOBODY }, { href: NOBODY }],
  ],
  [
    'restore-policy-version',
    [{ version: 1, dry_run: true }],
    [{ version: 999 }, { version: 1, drop_pending: [NOBODY] }],
  ],
  ['discard-draft-changes', [{ all: true, dry_run: true }], [{}, { hrefs: [NOBODY] }]],
]

const UNKNOWN = { app_name: NOBODY, env_name: shown('prod') }
const PRINTER = { name: 'printer', ip_addresses: ['10.9.9.9'] }
const DENY = {
  providers: ['ams'],
  consumers: [`app=${shown('payments')}`],
  ingress_services: [{ service: shown('SSH') }],
}

/** Where in a value, names of properties included, there is a character that nobody sees. */
function findHidden(value: unknown, path = ''): string[] {
  if (typeof value === 'string') return NEVER.test(value) ? [`${path}: ${JSON.stringify(value).slice(0, 200)}`] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [
    ...findHidden(name, `${path} (name)`),
    ...findHidden(inner, `${path}/${name}`),
  ])
}

t.test('no output of any tool hides a character, on success or failure', async (t) => {
  const service = await startConfirming(t, { estate })
  const { pce, simulator } = service
  const [ruleSet] = await pce.ruleSets.get('draft', null, { params: { name: `billing | prod${HIDDEN}` } })
  const [cluster] = await pce.containerClusters.getAll()
  const profiles = await pce.containerWorkloadProfiles.getAll('draft', cluster!.href)
  const profile = profiles.find(({ managed }) => managed === true)
  const workloads = await pce.workloads.getAll()
  const unmanaged = workloads.find(({ managed, name }) => managed !== true && typeof name === 'string')!
  const deny = await pce.denyRules.create(
    {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [{ actors: 'ams' }],
      ingress_services: [{ port: 1, proto: 6 }],
    },
    ruleSet!.href,
  )
  await pce.services.create({ name: `idle${HIDDEN}`, service_ports: [{ port: 1, proto: 6 }] })
  await pce.pairingProfiles.create({ name: `pair${HIDDEN}`, enabled: true })
  await pce.provisionPolicyChanges(`made${HIDDEN}`, [ruleSet!.href])
  const own = callsOf({
    workload: unmanaged.name!.replace(HIDDEN, SHOWN),
    rule: ruleSet!.rules![0]!.href,
    deny: deny.href,
    profile: profile!.href,
  })
  // A tool without calls of its own is called as its example does, and with an argument that it does not take.
  const others = tools.filter(({ name }) => !own.some(([tool]) => tool === name))
  const calls = [...own, ...others.map(({ name, example }) => [name, [example], [{ [NOBODY]: 1 }]] as const)]

  const outcome: Record<string, string[]> = { failed: [], succeeded: [], hidden: [], unequal: [], silent: [] }
  let tool = ''
  let seen = ''
  const leave = (payload: string): Json => {
    const messages: Json[] = payload.startsWith('{')
      ? [JSON.parse(payload)]
      : parseEvents(payload).events.map(({ data }) => data)
    seen += payload
    outcome.hidden!.push(...messages.flatMap((message) => findHidden(message, tool)))
    const { result, error } = messages.at(-1)
    const said = result === undefined ? error : JSON.parse(result.content[0].text)
    outcome.hidden!.push(...findHidden(said, `${tool}: text`))
    if (result?.structuredContent !== undefined && JSON.stringify(result.structuredContent) !== result.content[0].text)
      outcome.unequal!.push(tool)
    return { ...said, ok: result !== undefined && result.isError !== true }
  }
  const call = async (args: object, token?: string): Promise<Json> => {
    const message = service.callOf(tool, args, token === undefined ? {} : { token })
    Object.assign((message.params as Json)._meta ?? ((message.params as Json)._meta = {}), { progressToken: 1 })
    const answer = leave((await service.post(message)).payload)
    if (answer.error !== 'confirm_required' || token !== undefined) return answer
    const confirmed = await service.confirming(answer.confirm.body)
    return call(args, confirmed.json().confirm_token)
  }

  for (const [name, good, bad] of calls) {
    tool = name
    seen = ''
    for (const args of bad) if ((await call(args)).ok) outcome.succeeded!.push(`${tool} ${JSON.stringify(args)}`)
    if (good.length > 0 && tools.find((one) => one.name === name)?.requiresPce === true) {
      const body = [{ token: `refused${HIDDEN}`, message: `Not for you${HIDDEN}` }]
      simulator.faults.add({ kind: 'status', path: /./, times: 1, status: 403, body })
      await call(good[0])
      simulator.faults.clear()
    }
    for (const args of good) {
      const answer = await call(args)
      if (!answer.ok) outcome.failed!.push(`${tool}: ${answer.message}`)
    }
    if (!seen.includes('⟨U+202E⟩')) outcome.silent!.push(tool)
  }
  t.same(outcome, {
    failed: [],
    succeeded: [],
    hidden: [],
    unequal: [],
    // Every other tool said something that had to be escaped.
    silent: [],
  })
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
  const { labels } = await bench.ok('get-labels', { key: 'app' })
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
