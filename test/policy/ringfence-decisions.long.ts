/**
 * The decision table of the ringfence against the simulator's evaluator, over random policies: what the table says will become of a
 * flow is compared with what the simulator decides once the ringfence is in force, with and without the pending changes of others.
 */
import fc from 'fast-check'
import t from 'tap'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { EndMode, EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { Endpoint } from '../../pce-simulator/model.js'
import { createEvaluator } from '../../pce-simulator/policy/evaluate.js'
import type { Verdict } from '../../pce-simulator/policy/judge-end.js'
import type { PolicySnapshot } from '../../domain/policy/load-snapshot.js'
import { createConnectionJudge, dropsBy } from '../../domain/policy/judge-connection.js'
import { someWorkloadWith, type End } from '../../domain/policy/match-rules.js'
import { anyOf, isUnknown, UNDECIDED, unknown, type Answer, type Reason } from '../../domain/policy/three-valued.js'
import { DECISIONS, FLOW_EFFECTS, judgeFlow } from '../../domain/ringfence/judge-flow.js'
import type { FlowEnd } from '../../domain/traffic/flow-ends.js'
import { divide, judgeByRules } from '../../domain/ringfence/read-surroundings.js'
import { CATALOG, connection, LABELS, ruleSets, viewOf, type RandomEnd } from './random-policy.js'

const RUNS = { numRuns: 2500, seed: 20261122 }
const LABEL_BY_HREF = new Map(LABELS.map((label) => [label.href, label]))
const [PAY, , PROD] = LABELS as [Label, Label, Label]
const APPLICATION = [PAY, PROD]
const DRAFT = '/orgs/1/sec_policy/draft'
const AMS = { actors: 'ams' as const }
const ANY = { ip_list: { href: `${DRAFT}/ip_lists/1` } }
const EVERYTHING = [{ href: `${DRAFT}/services/1` }]

const MODES = ['idle', 'visibility_only', 'selective', 'full', 'none'] as const
type Mode = (typeof MODES)[number]

interface Case {
  active: RuleSet[]
  /** Rule sets that are pending: new, or about to be deleted. */
  added: RuleSet[]
  deleted: boolean
  ends: { source: RandomEnd; destination: RandomEnd; flow: { port: number | null; proto: number } }
  sourceMode: Mode
  mode: Mode
  selective: boolean
  isCovered: boolean
  denied: 'any' | 'ams' | 'both'
  hasDraft: boolean
  /** The rules that the ringfence has already. */
  own: RuleSet[]
  /** Judged at this very workload, not at any of the application. */
  isExact: boolean
  running: { process_name?: string }
  flowDirection: 'inbound' | 'outbound'
  os: readonly [source: string | null, destination: string | null]
}
const HOSTS: Pick<Case, 'own' | 'isExact' | 'running' | 'flowDirection' | 'os'> = {
  own: [],
  isExact: false,
  running: {},
  flowDirection: 'inbound',
  os: [null, null],
}
const os = fc.constantFrom('win-x86_64-server', 'ubuntu-x86_64-jammy', null)

const cases: fc.Arbitrary<Case> = fc
  .record({
    active: ruleSets(0, 2),
    added: fc.oneof({ weight: 2, arbitrary: fc.constant<RuleSet[]>([]) }, { weight: 1, arbitrary: ruleSets(1, 1) }),
    deleted: fc.constantFrom(false, false, true),
    ends: connection.filter(({ destination }) => destination.workload !== null),
    sourceMode: fc.constantFrom(...MODES),
    mode: fc.constantFrom(...MODES),
    selective: fc.boolean(),
    isCovered: fc.constantFrom(false, false, true),
    denied: fc.constantFrom('any', 'ams', 'both'),
    hasDraft: fc.constantFrom(true, true, false),
    own: fc.oneof({ weight: 2, arbitrary: fc.constant<RuleSet[]>([]) }, { weight: 1, arbitrary: ruleSets(1, 1) }),
    isExact: fc.boolean(),
    running: fc.constantFrom({}, { process_name: 'smb.exe' }, { process_name: 'agent.exe' }),
    flowDirection: fc.constantFrom('inbound' as const, 'outbound' as const),
    os: fc.tuple(os, os),
    // What VENs keep open comes before every rule.
    isEssential: fc.constantFrom(...Array.from({ length: 11 }, () => false), true),
  })
  .map(({ isEssential, ...one }) => {
    const role = one.ends.destination.labels.filter(({ key }) => key === 'role')
    const numbered = one.added.map((set) => ({ ...set, href: `${set.href}9`, update_type: 'create' as const }))
    return {
      ...one,
      added: numbered,
      own: one.own.map((set) => ({
        ...set,
        href: `${DRAFT}/rule_sets/99`,
        enabled: true,
        scopes: [APPLICATION.map((label) => ({ label }))],
      })),
      ends: {
        ...one.ends,
        ...(isEssential && { flow: { port: 67, proto: 17 } }),
        destination: { ...one.ends.destination, labels: [...APPLICATION, ...role] },
      },
    }
  })

const workloadOf = ({ workload, labels }: RandomEnd, mode: Mode, osId: string | null): [string, Workload][] =>
  workload === null
    ? []
    : [
        [
          workload,
          {
            href: workload,
            hostname: workload,
            os_id: osId,
            managed: mode !== 'none',
            enforcement_mode: mode === 'none' ? null : mode,
            labels: labels.map(({ href }) => ({ href })),
            interfaces: [],
          } as unknown as Workload,
        ],
      ]

const endpointOf = ({ workload, ip, fqdn }: RandomEnd): Endpoint =>
  workload === null ? { ip, ...(fqdn !== null && { fqdn }) } : { workload, ip }

/** What the simulator decides. */
function decide(
  sets: readonly RuleSet[],
  { ends, running, flowDirection, os: ids }: Case,
  sourceMode: Mode,
  mode: Mode,
): Verdict {
  const workloads = new Map([
    ...workloadOf(ends.source, sourceMode, ids[0]),
    ...workloadOf(ends.destination, mode, ids[1]),
  ])
  const { port, proto } = ends.flow
  return createEvaluator(
    viewOf(sets),
    workloads,
    LABEL_BY_HREF,
  )({
    src: endpointOf(ends.source),
    dst: endpointOf(ends.destination),
    service: { proto, ...(port !== null && { port }), ...running },
    flowDirection,
  })
}

const modeOf = (end: RandomEnd, mode: Mode): EndMode => (end.workload === null ? 'none' : mode)

const endOf = ({ workload, labels, ip, fqdn }: RandomEnd): End => ({
  ...someWorkloadWith(labels),
  isSome: false,
  workload,
  ip,
  fqdn,
})

const isApplication = ({ labels }: RandomEnd) => APPLICATION.every((label) => labels.includes(label))

const draftOf = ({ active, added, deleted }: Case): RuleSet[] => [
  ...active.map((set, at): RuleSet => (deleted && at === 0 ? { ...set, update_type: 'delete' } : set)),
  ...added,
]

const consumersOf = { any: [ANY], ams: [AMS], both: [AMS, ANY] }
const denyOf = ({ denied }: Pick<Case, 'denied'>) => ({
  providers: [AMS],
  consumers: consumersOf[denied],
  ingress_services: EVERYTHING,
})

/** The ringfence as it is written. */
function ringfenceOf(one: Case, covered: boolean): RuleSet {
  const href = `${DRAFT}/rule_sets/99`
  const rule = {
    enabled: true,
    providers: [AMS],
    ingress_services: EVERYTHING,
    resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  }
  const source = one.ends.source.labels.filter(({ key }) => key === 'app' || key === 'env').map((label) => ({ label }))
  return {
    href,
    name: 'RF-pay-prod',
    enabled: true,
    scopes: [APPLICATION.map((label) => ({ label }))],
    rules: [
      ...one.own.flatMap(({ rules }) => rules ?? []),
      { ...rule, href: `${href}/sec_rules/1`, consumers: [AMS] },
      ...(covered && !isApplication(one.ends.source)
        ? [{ ...rule, href: `${href}/sec_rules/2`, consumers: source, unscoped_consumers: true }]
        : []),
    ],
    deny_rules: [
      ...one.own.flatMap(({ deny_rules: denies }) => denies ?? []),
      ...(one.selective
        ? [{ ...denyOf(one), href: `${href}/deny_rules/1`, enabled: true, unscoped_consumers: true }]
        : []),
    ],
  }
}

const snapshotOf = (sets: RuleSet[]): PolicySnapshot => ({
  ...CATALOG,
  version: 'draft',
  ruleSets: sets,
  boundaries: [],
  unread: new Map(),
  pendingObjects: new Map(),
})

/** Whether an end drops the flow by the active policy, as the judge of all tools says. */
function todayOf({ active, own, ends }: Case, modes: readonly [EndMode, EndMode]): Answer {
  const [source, destination] = [endOf(ends.source), endOf(ends.destination)] as FlowEnd[]
  const at = createConnectionJudge(snapshotOf([...active, ...own]))({
    source: source!,
    destination: destination!,
    ...ends.flow,
  })
  return anyOf([dropsBy(at('src', modes[0])), dropsBy(at('dst', modes[1]))])
}

function judge(one: Case) {
  const { active, ends, sourceMode, mode, selective } = one
  const draft = draftOf(one)
  const [source, target] = [modeOf(ends.source, sourceMode), modeOf(ends.destination, mode)]
  const isOwn = isApplication(ends.source)
  const canCover = ['app', 'env'].every((key) => ends.source.labels.some((label) => label.key === key))
  const covered = isOwn || (one.isCovered && canCover)
  const drafted = decide([...draft, ...one.own], one, sourceMode, mode)
  const around = (sets: RuleSet[]) => {
    const { near, far } = divide(snapshotOf(sets), APPLICATION, null)
    return { near: snapshotOf(near), far }
  }
  const hasPending = one.added.length > 0 || (one.deleted && active.length > 0)
  const inDraft = around(draft)
  const { judge: ofAny, judgeAt } = judgeByRules(
    inDraft,
    hasPending ? around(active) : inDraft,
    APPLICATION,
    one.own[0] ?? null,
    selective ? denyOf(one) : null,
  )
  const rules = one.isExact ? judgeAt(endOf(ends.destination)) : ofAny
  const verdict = judgeFlow(
    {
      source,
      destination: target,
      ...ends.flow,
      today: todayOf(one, [source, target]),
      draft: one.hasDraft ? drafted.draftDecision : null,
      hasDraftRules: one.hasDraft && drafted.allowRules.length > 0,
      isOwn,
      rules: rules(endOf(ends.source), ends.flow.port, ends.flow.proto),
    },
    covered ? 'yes' : 'no',
    { selective, hasPending },
  )
  const enforced = (now: Mode): EnforcementMode | 'none' =>
    now === 'none' ? 'none' : now === 'full' || !selective ? 'full' : 'selective'
  const fence = ringfenceOf(one, covered)
  const after = [active, draft].map((sets) =>
    decide([...sets, fence], one, isOwn ? enforced(sourceMode) : sourceMode, enforced(mode)),
  )
  return { verdict, after, drafted }
}

/** Whether what the simulator decides afterwards is what was said. */
const KEPT: Record<(typeof FLOW_EFFECTS)[number], (after: Verdict) => boolean> = {
  // A source that enforces nothing may say that an override deny would block it.
  allowed: ({ decision, decidedBy }) =>
    decision === 'allowed' ||
    decision === 'unknown' ||
    (decision === 'potentially_blocked' && decidedBy === 'override_deny'),
  allowed_by_other_rules: ({ decision }) => decision !== 'blocked',
  not_affected: ({ decision }) => decision !== 'blocked',
  possibly_cut: () => true,
  cut: ({ decision }) => decision === 'blocked',
  blocked_by_override_deny: ({ decision, decidedBy }) => decision === 'blocked' && decidedBy === 'override_deny',
}

t.test('what the table predicts for a flow comes true, whatever else is provisioned', (t) => {
  const seen = new Map<string, number>(FLOW_EFFECTS.map((effect) => [effect, 0]))
  const details = fc.check(
    fc.property(cases, (one) => {
      const { verdict, after } = judge(one)
      seen.set(verdict.effect, (seen.get(verdict.effect) ?? 0) + 1)
      for (const then of after)
        if (!KEPT[verdict.effect](then))
          throw new Error(`${verdict.effect}, but it is ${then.decision} (${then.decidedBy})`)
    }),
    RUNS,
  )
  t.notOk(details.failed, fc.defaultReportMessage(details) ?? `held for ${details.numRuns} flows`)
  t.ok(Math.min(...seen.values()) > 10, `every effect is given often enough to be tested: ${JSON.stringify([...seen])}`)
  t.end()
})

/** What leaves the table no choice. Reasons that are not named here only come along with others. */
const EXCUSES: Partial<Record<Reason, RegExp>> = {
  address: /ip_lists\//,
  ip_list: /ip_lists\//,
  domain_name: /ip_lists\/5"/,
  exclusion: /"exclusion":true/,
  selector: /container_host/,
  virtual_service: /virtual_service/,
  network: /non_brn/,
  process: /services\/[57]"/,
  user: /security_principals\/1/,
  encryption: /"sec_connect":true/,
  stateless: /"stateless":true/,
  resolution: /virtual_services/,
  label: /"label":/,
  label_group: /label_groups\//,
  workload: /"workload":/,
  icmp_type: /services\/4"/,
  pending: /"update_type":"(create|delete)"/,
  essential: /"port":67/,
  // The mode of the source, or the one that the ringfence asks for.
  selective_outbound: /"selective",(true|false)\]$|,true\]$/,
}

t.test('calls a loss possible only where rules or pending changes leave it open', (t) => {
  const details = fc.check(
    fc.property(cases, (one) => {
      const { undecided } = judge(one).verdict
      const reasons = isUnknown(undecided) ? undecided.unknown : []
      const told = JSON.stringify([one.active, draftOf(one), one.own, one.ends.flow, one.sourceMode, one.selective])
      if (reasons.length > 0 && !reasons.some((reason) => EXCUSES[reason]?.test(told) === true))
        throw new Error(`undecided because of ${reasons.map((reason) => UNDECIDED[reason]).join(', ')}`)
    }),
    RUNS,
  )
  t.notOk(details.failed, fc.defaultReportMessage(details) ?? `held for ${details.numRuns} flows`)
  t.end()
})

/** From all workloads to all workloads, on every service. */
const EVERYBODY = {
  ...denyOf({ denied: 'ams' }),
  href: `${DRAFT}/rule_sets/1/rules/1`,
  enabled: true,
  unscoped_consumers: true,
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
}
const set = (name: string, rules: object) =>
  ({ href: `${DRAFT}/rule_sets/${name}`, name, enabled: true, scopes: [[]], ...rules }) as unknown as RuleSet
const end = (workload: string | null, labels: Label[]): RandomEnd => ({ workload, labels, ip: '10.0.0.1', fqdn: null })
const FROM_WORKLOAD: Case['ends'] = {
  source: end('/orgs/1/workloads/a', []),
  destination: end('/orgs/1/workloads/b', APPLICATION),
  flow: { port: 443, proto: 6 },
}
/** What the table says of a case, and what the simulator decides afterwards, with what is pending and without. */
function say(one: Case) {
  const { verdict, after } = judge(one)
  return { ...verdict, after: after.map(({ decision }) => decision) }
}

t.test('a pending change at the source leaves a loss open only without a draft decision', (t) => {
  const one: Case = {
    ...HOSTS,
    active: [set('1', { rules: [EVERYBODY] })],
    added: [],
    deleted: false,
    ends: FROM_WORKLOAD,
    sourceMode: 'full',
    mode: 'none',
    selective: false,
    isCovered: false,
    denied: 'ams',
    hasDraft: false,
  }
  const said = (pending: Partial<Case>) => say({ ...one, ...pending })
  const open = { effect: 'possibly_cut', undecided: unknown('pending') }
  const none = { effect: 'not_affected', undecided: 'no' }
  t.strictSame(said({ deleted: true }), { ...open, after: ['allowed', 'blocked'] }, 'its allow rule is to go')
  const denying = { added: [{ ...set('29', { deny_rules: [EVERYBODY] }), update_type: 'create' as const }] }
  t.strictSame(said(denying), { ...open, after: ['allowed', 'allowed'] }, 'a deny rule is to come')
  t.strictSame(said({ ...denying, hasDraft: true }), { ...none, after: ['allowed', 'allowed'] }, 'the draft tells')
  t.end()
})

t.test('a workload in full enforcement stays there, so it drops what no deny rule names', (t) => {
  const fromAddress = { ...EVERYBODY, consumers: [ANY] }
  const one: Case = {
    ...HOSTS,
    active: [set('1', { rules: [fromAddress] })],
    added: [],
    deleted: true,
    ends: { ...FROM_WORKLOAD, source: end(null, []) },
    sourceMode: 'none',
    mode: 'full',
    selective: true,
    isCovered: false,
    // Written to workloads alone, so it does not name the source.
    denied: 'ams',
    hasDraft: false,
  }
  t.strictSame(say(one), { effect: 'possibly_cut', undecided: unknown('pending'), after: ['allowed', 'blocked'] })
  t.end()
})

t.test('an override deny that only the source reports, and does not enforce, takes nothing away', (t) => {
  // It names the destination by its address, so it is written to the source alone.
  const override = { ...EVERYBODY, providers: [ANY], override: true }
  const [, CRM] = LABELS as [Label, Label]
  const one: Case = {
    ...HOSTS,
    active: [set('1', { deny_rules: [override] })],
    added: [],
    deleted: false,
    ends: { ...FROM_WORKLOAD, source: end('/orgs/1/workloads/a', [CRM, PROD]) },
    sourceMode: 'visibility_only',
    mode: 'visibility_only',
    selective: true,
    isCovered: true,
    denied: 'any',
    hasDraft: true,
  }
  const after = ['potentially_blocked', 'potentially_blocked']
  t.strictSame(say(one), { effect: 'allowed', undecided: 'no', after })
  t.strictSame(say({ ...one, sourceMode: 'full' }).effect, 'blocked_by_override_deny', 'where it enforces, it does')
  t.end()
})

t.test('what VENs keep open is lost to no deny rule', (t) => {
  const dhcp = { ...FROM_WORKLOAD, flow: { port: 67, proto: 17 } }
  const one: Case = {
    ...HOSTS,
    active: [set('1', { deny_rules: [{ ...EVERYBODY, override: true }] })],
    added: [],
    deleted: false,
    ends: dhcp,
    sourceMode: 'visibility_only',
    mode: 'idle',
    selective: false,
    isCovered: false,
    denied: 'any',
    hasDraft: true,
  }
  const kept = { effect: 'possibly_cut', undecided: unknown('essential', 'hidden'), after: ['allowed', 'allowed'] }
  t.strictSame(say(one), kept, 'an override deny')
  const atSource = { ...one, active: [], sourceMode: 'selective' as const, selective: true, denied: 'ams' as const }
  t.strictSame(say(atSource), kept, 'the deny rule of the ringfence at a source in selective mode')
  t.end()
})

t.test("an override deny at the destination is not hidden by the source's own deny rule", (t) => {
  const [, CRM] = LABELS as [Label, Label]
  // It names the source by its address, so it is written to the destination alone, which only reports as yet.
  const override = { ...EVERYBODY, consumers: [ANY], override: true }
  const fromCrm = { ...FROM_WORKLOAD, source: end('/orgs/1/workloads/a', [CRM, PROD]) }
  const one: Case = {
    ...HOSTS,
    active: [
      set('1', { deny_rules: [EVERYBODY, { ...override, egress_services: [{ href: `${DRAFT}/services/7` }] }] }),
    ],
    added: [],
    deleted: false,
    ends: fromCrm,
    sourceMode: 'full',
    mode: 'visibility_only',
    selective: false,
    isCovered: true,
    denied: 'any',
    hasDraft: true,
  }
  // Whether it does depends on the program that connects.
  t.strictSame(say(one), {
    effect: 'possibly_cut',
    undecided: unknown('hidden', 'process'),
    after: ['blocked', 'blocked'],
  })
  t.end()
})

t.test('every row of the table can decide', (t) => {
  const shadowed = DECISIONS.filter((row, at) =>
    DECISIONS.slice(0, at).some((earlier) =>
      Object.entries(earlier.when).every(([fact, is]) => row.when[fact as keyof typeof row.when] === is),
    ),
  )
  t.same(shadowed, [], 'no row lies behind one that always decides first')
  t.end()
})
