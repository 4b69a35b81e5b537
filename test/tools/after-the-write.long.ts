/**
 * When a PCE fails a tool that writes: at one of its writes, at taking back what it wrote, at everything it reads after that, or at one of
 * its second looks; and when its client leaves or the server stops meanwhile.
 * Whatever happens, a call that fails either leaves the PCE as it was, or says that something is or may be written.
 */
import t, { type Test } from 'tap'
import { tools } from '../../tools/index.js'
import type { Fault } from '../../pce-simulator/http/inject-faults.js'
import type { RecordedRequest } from '../../pce-simulator/index.js'
import { partial } from '../partial.js'
import { NOW, startBench, type Bench, type Json } from './harness.js'

/** Objects that nothing has touched yet, told from those of other scenes by their number. */
interface Scene {
  n: number
  ruleSet: string
  allow: string
  deny: string
  profile: string
  /** A workload with a VEN, whose mode nothing has changed yet. */
  managed: string
  /** The policy version in which the rule set was as it was made. */
  version?: number
  /** What is pending where the draft was provisioned before. */
  pending?: string[]
}

const ANY = { providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 23, proto: 'tcp' }] }
const ORDERING = { app_name: 'ordering', env_name: 'prod' }
const toNew = (n: number) => [`app=new-app-${n}`, `loc=new-place-${n}`]

/** Every tool that writes, with a call that has something to write. */
const CALLS: Record<string, (scene: Scene) => object> = {
  'create-label': ({ n }) => ({ key: 'app', value: `brand-new-${n}` }),
  'update-label': ({ n }) => ({ key: 'app', value: `spare-${n}`, new_value: `renamed-${n}` }),
  'delete-label': ({ n }) => ({ key: 'app', value: `spare-${n}` }),
  'create-label-dimension': ({ n }) => ({ key: `key-new-${n}`, display_name: `New key ${n}` }),
  'update-label-dimension': ({ n }) => ({ key: `key-${n}`, display_name: `Renamed ${n}` }),
  'delete-label-dimension': ({ n }) => ({ key: `key-${n}` }),
  'create-label-group': ({ n }) => ({ name: `g-new-${n}`, labels: ['app=payments'] }),
  'update-label-group': ({ n }) => ({ name: `g-${n}`, add: ['app=ordering'] }),
  'delete-label-group': ({ n }) => ({ name: `g-${n}` }),
  'create-virtual-service': ({ n }) => ({
    name: `v-new-${n}`,
    service_ports: [{ port: 1, proto: 6 }],
    labels: ['app=payments'],
  }),
  'update-virtual-service': ({ n }) => ({ name: `v-${n}`, labels: ['app=ordering'] }),
  'delete-virtual-service': ({ n }) => ({ name: `v-${n}` }),
  'create-pairing-profile': ({ n }) => ({ name: `p-new-${n}`, labels: ['app=payments'] }),
  'update-pairing-profile': ({ n }) => ({ name: `p-${n}`, labels: ['app=ordering'] }),
  'delete-pairing-profile': ({ n }) => ({ name: `p-${n}` }),
  'create-pairing-key': ({ n }) => ({ name: `p-${n}` }),
  'create-workload': ({ n }) => ({ name: `w-new-${n}`, ip_addresses: ['10.250.0.2'], labels: toNew(n) }),
  'update-workload': ({ n }) => ({ name: `w-${n}`, description: 'x', labels: toNew(n) }),
  'delete-workload': ({ n }) => ({ name: `w-${n}` }),
  'create-iplist': ({ n }) => ({ name: `l-new-${n}`, ip_ranges: [{ from_ip: '192.0.2.0/24' }] }),
  'update-iplist': ({ n }) => ({ name: `l-${n}`, description: 'x' }),
  'delete-iplist': ({ n }) => ({ name: `l-${n}` }),
  'create-service': ({ n }) => ({ name: `s-new-${n}`, service_ports: [{ port: 1, proto: 'tcp' }] }),
  'update-service': ({ n }) => ({ name: `s-${n}`, description: 'x' }),
  'delete-service': ({ n }) => ({ name: `s-${n}` }),
  'create-ruleset': ({ n }) => ({
    name: `r-new-${n}`,
    scopes: [[`app=spare-${n}`]],
    rules: [ANY, { ...ANY, rule_type: 'deny' }, { ...ANY, rule_type: 'override_deny' }],
  }),
  'update-ruleset': ({ n, ruleSet }) => ({ href: ruleSet, description: 'x', scopes: [[`app=spare-${n}`]] }),
  'delete-ruleset': ({ ruleSet }) => ({ href: ruleSet }),
  'update-sec-rule': ({ n, allow }) => ({ href: allow, ingress_services: { service: `s-${n}` } }),
  'delete-sec-rule': ({ allow }) => ({ href: allow }),
  'create-deny-rule': ({ n, ruleSet }) => ({
    ...ANY,
    ruleset_href: ruleSet,
    ingress_services: { service: `s-${n}` },
  }),
  'create-rule': ({ n, ruleSet }) => ({ ...ANY, ruleset_href: ruleSet, ingress_services: { service: `s-${n}` } }),
  'edit-ip-list-ranges': ({ n }) => ({ name: `l-${n}`, add_ranges: ['192.0.2.0/24'] }),
  'update-deny-rule': ({ n, deny }) => ({ href: deny, ingress_services: { service: `s-${n}` } }),
  'delete-deny-rule': ({ deny }) => ({ href: deny }),
  'update-container-workload-profile': ({ n, profile }) => ({
    profile_href: profile,
    assign_labels: [`app=spare-${n}`],
  }),
  'label-workloads': ({ n }) => ({ workloads: [`w-${n}`], set: toNew(n), create_missing_labels: true }),
  'provision-policy': () => ({ change_description: 'x' }),
  'set-enforcement-mode': ({ managed }) => ({ workloads: [managed], enforcement_mode: 'selective' }),
  'set-ven-status': ({ managed }) => ({ workloads: [managed], status: 'suspended' }),
  'restore-policy-object': ({ ruleSet, version }) => ({ version, href: ruleSet }),
  'restore-policy-version': ({ version, pending }) => ({ version, drop_pending: pending }),
  'discard-draft-changes': ({ pending }) => ({ hrefs: pending }),
  'retire-expired': ({ allow }) => ({ hrefs: [allow] }),
  'plan-port-closure': ({ n }) => ({ services: [{ port: 5432, proto: 6 }], ruleset_name: `Close-${n}` }),
  'create-ringfence': ({ n }) => ({ ...ORDERING, selective: true, ruleset_name: `RF-${n}` }),
  'ringfence-batch': ({ n }) => ({
    apps: [
      { ...ORDERING, selective: true, ruleset_name: `RF-a-${n}` },
      { app_name: 'ntp', env_name: 'prod', selective: true, ruleset_name: `RF-b-${n}` },
    ],
  }),
}

type Prop =
  | 'label'
  | 'dimension'
  | 'labelGroup'
  | 'virtualService'
  | 'pairingProfile'
  | 'workload'
  | 'list'
  | 'service'
  | 'ruleSet'
  | 'mode'

/** The objects that the call of a tool is about, so that no scene has others. */
const PROPS: Record<string, readonly Prop[]> = {
  'update-label': ['label'],
  'delete-label': ['label'],
  'update-label-dimension': ['dimension'],
  'delete-label-dimension': ['dimension'],
  'update-label-group': ['labelGroup'],
  'delete-label-group': ['labelGroup'],
  'update-virtual-service': ['virtualService'],
  'delete-virtual-service': ['virtualService'],
  'update-pairing-profile': ['pairingProfile'],
  'delete-pairing-profile': ['pairingProfile'],
  'create-pairing-key': ['pairingProfile'],
  'update-workload': ['workload'],
  'delete-workload': ['workload'],
  'label-workloads': ['workload'],
  'update-iplist': ['list'],
  'delete-iplist': ['list'],
  'edit-ip-list-ranges': ['list'],
  'update-service': ['service'],
  'delete-service': ['service'],
  'create-ruleset': ['label'],
  'update-ruleset': ['label', 'ruleSet'],
  'delete-ruleset': ['ruleSet'],
  'create-rule': ['service', 'ruleSet'],
  'update-sec-rule': ['service', 'ruleSet'],
  'delete-sec-rule': ['ruleSet'],
  'create-deny-rule': ['service', 'ruleSet'],
  'update-deny-rule': ['service', 'ruleSet'],
  'delete-deny-rule': ['ruleSet'],
  'update-container-workload-profile': ['label'],
  'set-enforcement-mode': ['mode'],
  'provision-policy': ['list', 'service', 'ruleSet'],
  'restore-policy-object': ['service', 'ruleSet'],
  'restore-policy-version': ['list', 'ruleSet'],
  'discard-draft-changes': ['list', 'service', 'ruleSet'],
  'retire-expired': ['ruleSet'],
}

/** What a scene needs beside its objects. */
const PREPARED: Record<string, (bench: Bench, scene: Scene) => Promise<Scene>> = {
  // A rule set of which an own field, a rule that stays, a rule that is gone and a rule that came differ from the version.
  async 'restore-policy-object'({ pce, simulator, ok }, scene) {
    const { version } = await pce.provisionPolicyChanges('x', simulator.state.pendingHrefs())
    await pce.ruleSets.update(scene.ruleSet, { description: 'changed' })
    await pce.put(scene.deny, { includeOrg: false, json: { enabled: false } })
    await ok('delete-sec-rule', { href: scene.allow })
    await pce.provisionPolicyChanges('x', simulator.state.pendingHrefs())
    await ok('create-rule', { ...ANY, ruleset_href: scene.ruleSet, ingress_services: { service: `s-${scene.n}` } })
    return { ...scene, version: version as number }
  },
  // A rule set and an IP list that differ from the version, of which the list was changed once more.
  async 'restore-policy-version'({ pce, simulator, ok }, scene) {
    const { version } = await pce.provisionPolicyChanges('x', simulator.state.pendingHrefs())
    await pce.ruleSets.update(scene.ruleSet, { description: 'changed' })
    await ok('update-iplist', { name: `l-${scene.n}`, description: 'changed' })
    await pce.provisionPolicyChanges('x', simulator.state.pendingHrefs())
    await ok('update-iplist', { name: `l-${scene.n}`, description: 'pending' })
    return { ...scene, version: version as number, pending: simulator.state.pendingHrefs() }
  },
  // What is pending is a rule set and an IP list that are in force otherwise, and a service that stays pending.
  async 'discard-draft-changes'({ pce, simulator, ok }, scene) {
    await pce.provisionPolicyChanges('x', simulator.state.pendingHrefs())
    await pce.ruleSets.update(scene.ruleSet, { description: 'changed' })
    await ok('update-iplist', { name: `l-${scene.n}`, description: 'changed' })
    const pending = simulator.state.pendingHrefs()
    await ok('update-service', { name: `s-${scene.n}`, description: 'changed' })
    return { ...scene, pending }
  },
  async 'retire-expired'({ pce }, scene) {
    await pce.put(scene.allow, { includeOrg: false, json: { description: '[expires: 2026-01-01]' } })
    return scene
  },
}

/** Tools that take nothing back: the same call writes what is left. */
const COMPLETED_BY_REPEATING = new Set(['plan-port-closure', 'restore-policy-object'])

/** Tools that take nothing back, each with the file that strikes their writes; here their looks are struck. */
const WRITES_ELSEWHERE: Record<string, string> = {
  'create-ringfence': 'ringfence.long.ts',
  'ringfence-batch': 'ringfence-batch.long.ts',
  'restore-policy-version': 'history.test.ts',
  'discard-draft-changes': 'history.test.ts',
}

/**
 * Credentials are written to the keystore, not to a PCE. Imports create in bulk by a PUT that is not repeated, and name what a lost one
 * made (import-workloads.long.ts). So do unpairing and upgrading, and what support reports are asked for cannot be read (ven-actions.test.ts).
 * Bindings are written in bulk as well: what a lost answer bound is read, and a failure half-way names who is left, whom the same call
 * completes (write-virtual-services.test.ts). A PCE does not tell which keys a pairing profile has, so nothing shows that they ended; it is
 * one write, of which write-pairing.test.ts loses the answer.
 */
const ELSEWHERE = [
  'bind-workloads',
  'delete-pairing-keys',
  'delete-pce-credentials',
  'import-workloads',
  'register-pce-credentials',
  'request-ven-support-reports',
  'unpair-vens',
  'upgrade-vens',
]

/** Faults as the client tells them apart: refused, perhaps done, not taken, not arrived, done without and with half an answer. */
const STRIKES: (Partial<Fault> & Pick<Fault, 'kind'>)[] = [
  { kind: 'status', status: 406, body: [{ token: 'odd_token', message: 'no' }] },
  { kind: 'status', status: 503 },
  { kind: 'retry-after' },
  { kind: 'reset' },
  { kind: 'commit-then-drop' },
  { kind: 'truncate' },
]
const [REFUSED, UNAVAILABLE] = STRIKES as [Strike, Strike]
/** A refusal that makes tools look whether someone else was faster. */
const TAKEN: Strike = {
  ...REFUSED,
  body: ['odd_token', 'ip_list_name_not_unique', 'rule_set_name_in_use', 'name_must_be_unique'].map((token) => ({
    token,
    message: 'no',
  })),
}
/** What a repetition is told whose first attempt was carried out, but not answered. */
const SECOND_THOUGHTS = [404, 406, 503]
/** What a later look may meet; the last is an answer, but not the object. */
const BLINDNESS: Strike[] = [
  UNAVAILABLE,
  { kind: 'reset' },
  { kind: 'truncate' },
  { kind: 'status', status: 200, body: {} },
]
/** What one of its looks may meet in turn: a refusal, half an answer, and what the client repeats until it gives up. */
const READ_STRIKES: Strike[] = [REFUSED, { kind: 'truncate' }, { kind: 'retry-after' }, UNAVAILABLE]
const REPEATED = new Set([READ_STRIKES[2], READ_STRIKES[3]])

/**
 * Selects what the nth look of a tool meets. What the client repeats is the same code for every look, so one of its two
 * kinds is enough, in turn. A batch looks with the code of a single ringfence, so one kind is enough for each.
 */
function strikesOf(name: string, nth: number): Strike[] {
  if (name === 'ringfence-batch') return [READ_STRIKES[nth % READ_STRIKES.length]!]
  return READ_STRIKES.filter((strike) => !REPEATED.has(strike) || strike === READ_STRIKES[2 + (nth % 2)])
}
/** How often a fault strikes that lasts until the call ends. */
const LASTING = 1000
type Strike = (typeof STRIKES)[number]

/** Requests that change something; some of those that ask are POSTs. */
const WRITES = /^(?!.*\/(?:async_queries|dependencies|impact)(?:\/|$))/
const isWrite = ({ method, path }: RecordedRequest) => method !== 'GET' && WRITES.test(path)

/** Finds this path, and those of other objects in its place. */
const alike = (path: string) =>
  new RegExp(
    `^${path.replace(/(?<=\/)\d+(?=\/|$)/g, '\\d+').replace(/(?<=\/)[\da-f-]{36}(?=\/|$)/g, '[\\da-f-]{36}')}$`,
  )

interface Stage {
  bench: Bench
  /** Makes a scene. */
  next: () => Promise<Scene>
  /** Ends the next call while the PCE is at this write of it, counted from 1. */
  endAt: (write: number, end: 'stop' | 'leave') => void
}

/**
 * A PCE for one tool. Each write takes it longer than tools keep what they have read, so that whatever they look up afterwards
 * is asked for again.
 */
async function startStage(t: Test, name: string): Promise<Stage> {
  let slow = (): void => undefined
  let endsAt = Infinity
  let how: 'stop' | 'leave' = 'stop'
  const now = () => {
    slow()
    return NOW
  }
  const bench = await startBench(t, { workloads: 20, flows: 20, now })
  const { simulator, pce } = bench
  slow = () => {
    const last = simulator.requests.at(-1)
    if (last !== undefined && isWrite(last)) bench.advance(61_000)
    if (simulator.requests.filter(isWrite).length < endsAt) return
    endsAt = Infinity
    bench[how]()
  }
  const [cluster] = await pce.containerClusters.getAll()
  const profiles: Json[] = await pce.containerWorkloadProfiles.getAll('draft', cluster!.href)
  const profile: string = profiles.find(({ namespace }) => namespace !== null).href
  const managed = (await pce.workloads.getAll()).filter((one) => one.managed !== false).map(({ href }) => href)
  const [payments] = (await pce.labels.getAll()).filter(({ value }) => value === 'payments')
  const props = new Set(PROPS[name])
  let n = 0
  return {
    bench,
    endAt: (write, end) => ([endsAt, how] = [write, end]),
    async next() {
      n += 1
      const scene: Scene = { n, ruleSet: '', allow: '', deny: '', profile, managed: managed[n % managed.length]! }
      if (props.has('label')) await pce.labels.create({ key: 'app', value: `spare-${n}` })
      if (props.has('dimension')) await pce.labelDimensions.create({ key: `key-${n}`, display_name: `Key ${n}` })
      if (props.has('labelGroup')) await bench.ok('create-label-group', { name: `g-${n}`, labels: ['app=payments'] })
      if (props.has('virtualService'))
        await bench.ok('create-virtual-service', { name: `v-${n}`, service_ports: [{ port: 8443, proto: 6 }] })
      if (props.has('pairingProfile')) await bench.ok('create-pairing-profile', { name: `p-${n}` })
      if (props.has('workload')) {
        const interfaces = [{ name: 'eth0', address: '10.250.0.1' }]
        await pce.workloads.create({ name: `w-${n}`, interfaces, labels: [{ href: payments!.href }] })
      }
      if (props.has('list')) await pce.ipLists.create({ name: `l-${n}`, ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
      if (props.has('service')) await pce.services.create({ name: `s-${n}`, service_ports: [{ port: 8443, proto: 6 }] })
      if (props.has('ruleSet')) {
        const rules = [ANY, { ...ANY, rule_type: 'deny' }]
        const { ruleset } = await bench.ok('create-ruleset', { name: `r-${n}`, scopes: [['app=payments']], rules })
        const [allow, deny] = ruleset.rules.map(({ href }: Json) => href)
        Object.assign(scene, { ruleSet: ruleset.href, allow, deny })
      }
      if (props.has('mode')) await pce.workloads.update(scene.managed, { enforcement_mode: 'visibility_only' })
      return PREPARED[name]?.(bench, scene) ?? scene
    },
  }
}

/** The objects that these tools can write, by their hrefs, as JSON without the times and authors of a change that was taken back. */
type State = ReadonlyMap<string, string>

function stateOf({ simulator }: Bench): State {
  const find = (path: string) => simulator.state.find(`/orgs/${simulator.orgId}${path}`) as Json
  const policy = ['ip_lists', 'services', 'rule_sets', 'label_groups', 'virtual_services']
  const lists = [
    '/labels',
    '/label_dimensions',
    '/pairing_profiles',
    '/workloads',
    ...policy.flatMap((kind) => ['draft', 'active'].map((v) => `/sec_policy/${v}/${kind}`)),
  ]
  const clusters: Json[] = find('/container_clusters')
  const profiles = clusters.map(
    ({ href }) => `${href.slice(href.indexOf('/container_clusters'))}/container_workload_profiles`,
  )
  const objects: Json[] = [...lists, ...profiles].flatMap((path) => find(path)).filter((one) => one.deleted !== true)
  return new Map(objects.map((one) => [one.href, JSON.stringify(one).replace(PASSING, '$1:0')]))
}

/** When and by whom an object was changed, in its JSON. */
const PASSING = /("(?:updated|deleted)_(?:at|by)"):(?:null|"[^"]*"|\{[^{}]*\})/g

/** What each object was and is that differs. */
function changesOf(before: State, after: State): Record<string, { was: string | undefined; is: string | undefined }> {
  const differing = [...new Set([...before.keys(), ...after.keys()])].filter(
    (href) => before.get(href) !== after.get(href),
  )
  return Object.fromEntries(differing.map((href) => [href, { was: before.get(href), is: after.get(href) }]))
}

const isSame = (before: State, after: State) => Object.keys(changesOf(before, after)).length === 0

/** The hrefs of the objects and of the rules inside them. */
function hrefsIn(state: State): Set<string> {
  const rules = [...state].flatMap(([href, text]): Json[] => {
    if (!href.includes('/rule_sets/')) return []
    const { rules = [], deny_rules: denyRules = [] } = JSON.parse(text)
    return [...rules, ...denyRules]
  })
  return new Set([...state.keys(), ...rules.map(({ href }) => href)])
}

/** The hrefs that one state has beyond another. */
function freshIn(now: State, old: State): string[] {
  const known = hrefsIn(old)
  return [...hrefsIn(now)].filter((href) => !known.has(href))
}

interface Outcome {
  answer?: Json
  error?: Json
  requests: RecordedRequest[]
  /** True if a lasting fault struck. */
  struck?: boolean
  /** What was pending before and is not any more. */
  lost?: string[]
}

async function attempt(bench: Bench, name: string, args: object): Promise<Outcome> {
  const { simulator } = bench
  const { requests } = simulator
  simulator.clearRequests()
  const pending = simulator.state.pendingHrefs()
  const facts = () => {
    const now = new Set(simulator.state.pendingHrefs())
    const struck = simulator.faults.pending().some(({ times, skip = 0 }) => skip === 0 && times < LASTING)
    return { requests: [...requests], struck, lost: pending.filter((href) => !now.has(href)) }
  }
  try {
    return { answer: await bench.ok(name, args), ...facts() }
  } catch (error) {
    const text = (error as Error).message
    return { error: JSON.parse(text.slice(text.indexOf('{'))), ...facts() }
  } finally {
    simulator.faults.clear()
  }
}

/** `done` tells how many writes had succeeded when the fault struck. */
function judge(t: Test, before: State, after: State, { answer, error, requests }: Outcome, done: number): void {
  const isAsBefore = isSame(before, after)
  // What a deletion did whose answer was lost is known to nobody.
  const mayBeGone = requests.some(({ method, status }) => method === 'DELETE' && status === null)
  const told: Json[] = error?.labels_created ?? []
  if (!mayBeGone) for (const { href } of told) t.ok(after.has(href), `${href} is there`)
  if (error === undefined) {
    t.notOk(isAsBefore, 'a call that succeeds has written')
    t.type(answer.message, 'string')
    return
  }
  const said = `${error.error}: ${error.message}`
  if (error.partial === true) {
    const named: string[] = error.written.map(({ href }: Json) => href)
    const fresh = freshIn(after, before)
    t.ok(named.length > 0, said)
    t.notOk('rolled_back' in error)
    if (mayBeGone) return
    // Nor what a lost creation made.
    const known = error.error === 'outcome_unknown' ? fresh.filter((href) => named.includes(href)) : fresh
    t.same(named.toSorted(), known.toSorted(), 'it names what is left')
    t.equal(named.length, done, 'and all of it')
  } else if (error.error === 'outcome_unknown' && error.rolled_back !== true) {
    t.equal(done, 0, `nothing is known to be written. ${said}`)
  } else {
    t.same(changesOf(before, after), {}, `nothing is left. ${said}`)
  }
}

/** Judges a tool that takes nothing back: it names what it wrote and what it did not, and the same call writes the rest. */
async function judgeByRepeating(
  t: Test,
  bench: Bench,
  before: State,
  after: State,
  { answer, error, requests }: Outcome,
  name: string,
  args: object,
): Promise<void> {
  const isAsBefore = isSame(before, after)
  const taken = requests.filter((one) => isWrite(one) && one.status !== null && one.status < 300)
  if (error === undefined) {
    t.notOk(isAsBefore, 'a call that succeeds has written')
    t.ok(answer.verified === true || answer.warnings?.length > 0, 'and has read it back, or says why not')
    return
  }
  const said = `${error.error}: ${error.message}`
  if (error.partial !== true) {
    t.same(changesOf(before, after), {}, `nothing is written. ${said}`)
    return
  }
  const [sure, open] = [error.written, error.uncertain ?? []] as [Json[], Json[]]
  t.ok(sure.length <= taken.length && taken.length <= sure.length + open.length, `it counts what it wrote. ${said}`)
  t.same(
    taken.slice(0, sure.length).map(({ method }) => method),
    sure.map(({ method }) => method),
  )
  partial(t, await bench.ok(name, args), { version: Number }, 'the same call writes the rest')
  partial(t, await bench.ok(name, args), { status: 'no_changes' }, 'and then all is as it was')
}

/** Judges a tool that takes changes out of the draft: it names those that are gone, and claims nothing that it did not read. */
function judgeDraft(t: Test, before: State, after: State, { answer, error, lost }: Outcome, scene: Scene): void {
  if (error !== undefined) {
    const said = `${error.error}: ${error.message}`
    t.same(error.dropped_hrefs ?? [], lost, `it names what was dropped. ${said}`)
    if (error.dropped_hrefs === undefined) t.same(changesOf(before, after), {}, `nothing is changed. ${said}`)
    else t.match(said, /Nothing was restored/)
    return
  }
  t.notOk(isSame(before, after), 'a call that succeeds has written')
  if (answer.discarded_hrefs !== undefined) t.same(answer.discarded_hrefs, lost, 'it names what is gone')
  else {
    t.notOk(JSON.parse(after.get(scene.ruleSet)!).description, 'the draft is the version')
  }
  if (answer.verified === true) return
  t.match(answer.message, /could not be read back/, 'it claims nothing that it did not read')
  t.match(answer.warnings.join('\n'), /Read back failed/, 'and says why')
}

/** Judges a ringfence, or each one of a batch: it names exactly what is there, and the same call writes the rest. */
async function judgeRingfences(
  t: Test,
  bench: Bench,
  before: State,
  after: State,
  { answer, error }: Outcome,
  name: string,
  args: object,
): Promise<void> {
  const results: Json[] = answer?.results?.map((one: Json) => one.error ?? one.result) ?? [error ?? answer]
  const hrefs = (list: Json[] = []) => list.map(({ href }) => href)
  const named = results.flatMap((one) =>
    one.error === undefined ? [one.ruleset.href, ...hrefs(one.ruleset.rules)] : hrefs(one.written),
  )
  const said = results.map((one) => one.message).join(' | ')
  t.same(named.toSorted(), freshIn(after, before).toSorted(), `it names exactly what is there. ${said}`)
  const failed = results.filter((one) => one.error !== undefined)
  for (const one of failed) {
    t.equal(one.partial === true, hrefs(one.written).length > 0, 'half a ringfence is said to be half')
    if (one.stands !== undefined) t.same(hrefs(one.stands).toSorted(), hrefs(one.written).toSorted())
  }
  if (named.length === 0) return
  await bench.ok(name, args)
  const whole = stateOf(bench)
  const rest = freshIn(whole, after).length
  if (failed.length === 0) t.equal(rest, 0, 'all was written')
  else if (failed.every((one) => one.not_written !== undefined))
    t.equal(
      rest,
      failed.reduce((sum, one) => sum + one.not_written, 0),
      'it counts what is missing, and the same call writes it',
    )
  if (rest > 0) {
    await bench.ok(name, args)
    t.same(freshIn(stateOf(bench), whole), [], 'and then nothing is missing')
  }
  // A list has at most 500 objects.
  for (const href of freshIn(whole, before)) if (/rule_sets\/\d+$/.test(href)) await bench.pce.ruleSets.delete(href)
}

/** Judges a closure: it names what it wrote, its deny rule comes last, and the same call writes the rest. */
async function judgeClosure(
  t: Test,
  bench: Bench,
  before: State,
  after: State,
  { answer, error }: Outcome,
  name: string,
  args: object,
): Promise<void> {
  const hrefs = (list: Json[] = []) => list.map(({ href }) => href).toSorted()
  const fresh = freshIn(after, before).toSorted()
  const said = `${error?.error}: ${error?.message ?? answer.message}`
  if (error === undefined) t.equal(answer.rules.written + 1, fresh.length, 'it counts its rules, beside the rule set')
  else {
    const named = hrefs(error.written)
    // What a lost creation made is known only where it could be looked for.
    const known = error.error === 'outcome_unknown' ? fresh.filter((href) => named.includes(href)) : fresh
    t.same(named, known, `it names what it wrote. ${said}`)
    t.equal(error.partial === true, named.length > 0, 'half a closure is said to be half')
    if (error.stands !== undefined) t.same(hrefs(error.stands), fresh, 'and what stands')
  }
  const { rules } = await bench.ok(name, args)
  const whole = stateOf(bench)
  const all = freshIn(whole, before)
  const rest = all.length - fresh.length
  t.equal(rules.present + rules.written + 1, all.length, 'the same call writes the rest, and nothing twice')
  if (error?.stands !== undefined) t.equal(error.not_written, rest, 'of which it had said how much it is')
  if (fresh.some((href) => href.includes('/deny_rules/'))) t.equal(rest, 0, 'the deny rule comes last')
  const { rules: again } = await bench.ok(name, args)
  t.equal(again.written, 0, 'and then nothing is missing')
  t.ok(isSame(stateOf(bench), whole))
  // Its rules are those of others to the closures of other scenes.
  for (const href of all) if (/rule_sets\/\d+$/.test(href)) await bench.pce.ruleSets.delete(href)
}

t.test('covers every tool that writes', async (t) => {
  const writing = tools.filter(({ effect }) => effect !== 'read').map(({ name }) => name)
  t.same(writing.toSorted(), [...Object.keys(CALLS), ...ELSEWHERE].toSorted())
})

for (const [name, toArgs] of Object.entries(CALLS)) {
  t.test(name, async (t) => {
    const { bench, next, endAt } = await startStage(t, name)
    const { faults } = bench.simulator
    const isCompleted = COMPLETED_BY_REPEATING.has(name)
    const isRingfence = name.includes('ringfence')
    const writesElsewhere = WRITES_ELSEWHERE[name] !== undefined
    let scene = await next()
    /** The state that the last call left, if it left everything as it was. */
    let left: State | undefined

    /** One call with these faults, in a scene of its own. */
    async function strike(t: Test, done: number, ...struck: Fault[]): Promise<Outcome> {
      const before = left ?? stateOf(bench)
      bench.advance(61_000)
      faults.add(...struck)
      const outcome = await attempt(bench, name, toArgs(scene))
      const after = stateOf(bench)
      t.notMatch(JSON.stringify([outcome.answer, outcome.error]), '"error":"internal"')
      if (name === 'plan-port-closure') await judgeClosure(t, bench, before, after, outcome, name, toArgs(scene))
      else if (isCompleted) await judgeByRepeating(t, bench, before, after, outcome, name, toArgs(scene))
      else if (isRingfence) await judgeRingfences(t, bench, before, after, outcome, name, toArgs(scene))
      else if (writesElsewhere) judgeDraft(t, before, after, outcome, scene)
      else judge(t, before, after, outcome, done)
      const isUntouched = !isCompleted && isSame(before, after)
      left = isUntouched ? after : undefined
      if (!isUntouched) scene = await next()
      return outcome
    }

    const { answer, requests } = await strike(t, 0)
    t.ok(answer, 'goes well when nothing is wrong')
    const first = requests.findIndex(isWrite)
    const writes = requests.filter(isWrite)
    const isRead = ({ method }: RecordedRequest) => method === 'GET'
    // update-workload reads the workload again between a new label and its own write, and takes the label back if that fails.
    // plan-port-closure looks before its deny rule whether its allow rules are there.
    const isLookingBetween = name === 'update-workload' || name === 'plan-port-closure'
    const told = isLookingBetween ? requests.findLastIndex(isWrite) : first
    const seen = requests.slice(0, told).filter(isRead).length
    const looks = requests.slice(told).some(isRead)

    for (const fault of looks && !writesElsewhere ? BLINDNESS : []) {
      await t.test(`what it reads after the write: ${fault.kind} ${fault.status ?? ''}`, async (t) => {
        const { answer, error } = await strike(t, 1, { ...fault, path: /./, method: 'GET', skip: seen, times: LASTING })
        t.notOk(error, 'the write is done, so the call has not failed')
        t.ok(answer?.warnings?.length > 0, `it says what it could not read: ${answer?.warnings}`)
      })
    }

    let nth = 0
    for (const [at, { path }] of requests.entries()) {
      if (!isRead(requests[at]!)) continue
      const pattern = alike(path)
      const skip = requests.slice(0, at).filter((one) => isRead(one) && pattern.test(one.path)).length
      const done = requests.slice(0, at).filter(isWrite).length
      // What is looked at once, and before anything is written, is struck by faulty-reads.long.ts.
      if (skip === 0 && done === 0) continue
      // Nor is every question whether a query is ready another look: one of them is struck.
      if (path.includes('/async_queries/') && skip > 1) continue
      nth += 1
      for (const fault of strikesOf(name, nth)) {
        const what = `${fault.kind} ${fault.status ?? ''}`
        await t.test(`from look ${skip + 1} at ${path} on, after ${done} writes: ${what}`, async (t) => {
          const {
            answer,
            error,
            requests: sent,
            struck,
          } = await strike(t, done, { ...fault, path: pattern, method: 'GET', skip, times: LASTING })
          t.ok(struck, 'the look was struck')
          if (isRingfence) return
          const wrote = sent.filter((request) => isWrite(request) && request.method !== 'DELETE').length
          if (writesElsewhere && done === writes.length) t.equal(answer?.verified, false, 'unread is unverified')
          if (done === writes.length) t.notOk(error, 'all is written, so the call has not failed')
          else if (error === undefined)
            t.equal(sent.filter(isWrite).length, writes.length, `all is written: ${answer.message}`)
          else if (done === 0 && error.partial !== true)
            t.equal(wrote, 0, 'nothing is written after a look that failed')
        })
      }
    }

    if (writesElsewhere) return
    for (const [place, { method }] of writes.entries()) {
      const skip = writes.slice(0, place).filter((write) => write.method === method).length
      for (const fault of STRIKES) {
        await t.test(`its write ${place + 1}: ${fault.kind} ${fault.status ?? ''}`, async (t) => {
          const { error } = await strike(t, place, { ...fault, path: WRITES, method, skip, times: 20 })
          if (fault === REFUSED)
            partial(t, error, { error: 'pce_error', token: 'odd_token' }, 'a refusal leaves no doubt')
          if (fault === UNAVAILABLE && method !== 'POST')
            t.equal(error?.error, 'pce_error', 'nor does what never worked')
        })
      }
      const struck = { path: WRITES, method, skip, times: 20 }

      for (const status of method === 'POST' ? [] : SECOND_THOUGHTS) {
        await t.test(`its write ${place + 1} is done, its answer lost, and the retry answered ${status}`, async (t) => {
          const then: Fault = { kind: 'status', status, ...struck, skip: 0 }
          const { answer, error } = await strike(t, place, { kind: 'commit-then-drop', ...struck, times: 1 }, then)
          if (method === 'DELETE' && status === 404) t.ok(answer, 'what is gone is deleted')
          else partial(t, error, { error: 'outcome_unknown', http_status: status, token: 'service_unavailable' })
          if (place > 0 && error !== undefined) partial(t, error, { partial: true }, 'and nothing is taken back')
        })
      }

      if (method === 'POST') {
        await t.test(`its write ${place + 1} is refused, and the reason cannot be looked up`, async (t) => {
          const before = requests.slice(0, requests.indexOf(writes[place]!))
          const reads = { path: /./, method: 'GET', skip: before.filter(isRead).length, times: LASTING }
          const { error } = await strike(t, place, { ...TAKEN, ...struck }, { ...UNAVAILABLE, ...reads })
          partial(t, error, { error: 'pce_error', http_status: 406, token: 'odd_token' }, 'the refusal is told')
        })

        await t.test(`its write ${place + 1} is accepted without naming what was created`, async (t) => {
          const { error } = await strike(t, place, { kind: 'status', status: 201, body: {}, ...struck })
          partial(t, error, {
            error: 'outcome_unknown',
            message: /accepted.*cannot be read. Check before repeating it/,
          })
        })
      }

      await t.test(`its client leaves during its write ${place + 1}`, async (t) => {
        endAt(place + 1, 'leave')
        const { answer, error, requests: sent } = await strike(t, place + 1)
        if (error !== undefined) partial(t, error, { error: 'cancelled' }, 'what ends it is that the client left')
        else t.equal(sent.filter(isWrite).length, writes.length, `all is written: ${answer?.message}`)
      })

      await t.test(`the server stops during its write ${place + 1}`, async (t) => {
        endAt(place + 1, 'stop')
        const { answer, error, requests: sent } = await strike(t, place)
        if (place === writes.length - 1) {
          t.ok(answer, 'the last is done, and so is the call')
          return
        }
        if (isCompleted) {
          t.ok(answer ?? error.partial, 'what is begun is done, or said')
          return
        }
        partial(t, error, { error: 'cancelled', rolled_back: true }, 'the others are taken back')
        const begun = sent.filter((request) => isWrite(request) && request.method !== 'DELETE')
        t.equal(begun.length, place + 1, 'and none is begun')
      })
      if (place === 0) continue
      // A deletion is answered without a body: there is nothing to cut.
      for (const fault of STRIKES.filter(({ kind }) => kind !== 'truncate')) {
        await t.test(
          `its write ${place + 1}, and rolling back the others: ${fault.kind} ${fault.status ?? ''}`,
          async (t) => {
            const write = { ...REFUSED, path: WRITES, method, skip, times: 20 }
            const { error } = await strike(t, place, write, { ...fault, path: /./, method: 'DELETE', times: LASTING })
            partial(t, error, { error: 'pce_error', token: 'odd_token', partial: true })
          },
        )
      }
    }
  })
}
