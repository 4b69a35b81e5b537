/**
 * Which rules are redundant, and what proves it, against every connection of a small universe: each combination of labels, those of other
 * values and none among them, each class of addresses, each class of ports. What a rule decides about is asked of the matcher, which shares
 * nothing with the boxes that the judgement is made of.
 */
import fc from 'fast-check'
import t from 'tap'
import { indexLabels } from '../../domain/inventory/labels.js'
import type { Label } from '../../schemas/pce/label.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Service } from '../../schemas/pce/service.js'
import { findRedundantRules, type DatedRule } from '../../domain/hygiene/find-redundant.js'
import { catalogOf } from '../../domain/policy/load-snapshot.js'
import { matchRules, type End } from '../../domain/policy/match-rules.js'
import type { RuleType } from '../../domain/policy/rule-type.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const [PAY, CRM, PROD] = ['app=pay', 'app=crm', 'env=prod'].map((text, at) => {
  const [key = '', value = ''] = text.split('=')
  return { href: `/orgs/1/labels/${at + 1}`, key, value }
}) as [Label, Label, Label]
const groups = [{ href: `${DRAFT}/label_groups/1`, name: 'both', key: 'app', labels: [PAY, CRM], sub_groups: [] }]
const lists = [
  {
    href: `${DRAFT}/ip_lists/1`,
    name: 'Any (0.0.0.0/0 and ::/0)',
    ip_ranges: [{ from_ip: '0.0.0.0/0' }, { from_ip: '::/0' }],
  },
  {
    href: `${DRAFT}/ip_lists/2`,
    name: 'office',
    ip_ranges: [{ from_ip: '10.0.0.0/24' }, { from_ip: '10.0.0.9', exclusion: true }],
  },
  { href: `${DRAFT}/ip_lists/3`, name: 'eights', ip_ranges: [{ from_ip: '8.8.8.0', to_ip: '8.8.8.8' }] },
  { href: `${DRAFT}/ip_lists/4`, name: 'both', ip_ranges: [{ from_ip: '10.0.0.0/24' }, { from_ip: '8.8.8.8' }] },
] as IpList[]
const services = [
  { href: `${DRAFT}/services/1`, name: 'All Services', service_ports: [{ proto: -1 }] },
  {
    href: `${DRAFT}/services/2`,
    name: 'web',
    service_ports: [
      { port: 80, proto: 6 },
      { port: 443, proto: 6 },
    ],
  },
] as Service[]
const catalog = catalogOf({ labels: indexLabels([PAY, CRM, PROD]), services, lists, groups: groups })

const ADDRESSES = ['10.0.0.1', '10.0.0.9', '8.8.8.8', '8.8.8.1', '9.9.9.9']
const FLOWS = [
  [80, 6],
  [443, 6],
  [22, 6],
  [53, 17],
  [null, 47],
] as const
const NAMED = '/orgs/1/workloads/a'
const OF_NAMED = { app: 'pay', env: 'prod' }

/** Nobody is at both ends, except for the one that rules name. */
const endsOf = (side: string): End[] => {
  const addresses = ADDRESSES.map((ip): End => ({ workload: null, labels: {}, ip, fqdn: null }))
  const workloads: Record<string, string>[] = ['', 'pay', 'crm', 'other'].flatMap((app) =>
    ['', 'prod'].map((env) => ({ ...(app && { app }), ...(env && { env }) })),
  )
  return [
    ...addresses,
    // Which address it has does not depend on its labels.
    ...workloads.flatMap((labels, at) =>
      ADDRESSES.map((ip, of): End => ({ workload: `/orgs/1/workloads/${side}${at}-${of}`, labels, ip, fqdn: null })),
    ),
    ...ADDRESSES.map((ip): End => ({ workload: NAMED, labels: OF_NAMED, ip, fqdn: null })),
  ]
}
const SOURCES = endsOf('s')
const DESTINATIONS = endsOf('d')

/** The connections that a rule decides about at each end, as bits. */
function pointsOf({ rule, scopes }: DatedRule): Record<'src' | 'dst', bigint> {
  const bits: Record<'src' | 'dst', string[]> = { src: [], dst: [] }
  for (const destination of DESTINATIONS) {
    const match = matchRules([{ rule, scopes }], destination, catalog)
    for (const source of SOURCES) {
      const isSelf = source.workload !== null && source.workload === destination.workload
      for (const [port, proto] of FLOWS) {
        const answers = isSelf
          ? ['no', 'no']
          : [match.atSource(source, port, proto), match.atDestination(source, port, proto)]
        if (answers.some((answer) => typeof answer === 'object'))
          throw new Error(`undecided: ${JSON.stringify(answers)}`)
        bits.src.push(answers[0] === 'yes' ? '1' : '0')
        bits.dst.push(answers[1] === 'yes' ? '1' : '0')
      }
    }
  }
  return { src: BigInt(`0b${bits.src.join('')}`), dst: BigInt(`0b${bits.dst.join('')}`) }
}

const DECIDES: Record<RuleType, RuleType[]> = {
  allow: ['allow', 'override_deny'],
  deny: ['deny', 'allow', 'override_deny'],
  override_deny: ['override_deny'],
}

const label = fc.constantFrom(PAY, PAY, CRM, PROD).map(({ href, key, value }) => ({ label: { href, key, value } }))
const group = fc.constant({ label_group: { href: groups[0]!.href, key: 'app', name: 'both' } })
const list = fc.constantFrom(...lists).map(({ href }) => ({ ip_list: { href } }))
const actor = fc.oneof(
  { weight: 5, arbitrary: label },
  { weight: 1, arbitrary: group },
  { weight: 3, arbitrary: list },
  { weight: 3, arbitrary: fc.constant({ actors: 'ams' as const }) },
  { weight: 1, arbitrary: fc.constant({ workload: { href: NAMED } }) },
)
const service = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ href: services[0]!.href }) },
  { weight: 2, arbitrary: fc.constant({ href: services[1]!.href }) },
  fc.constantFrom(
    { port: 80, proto: 6 },
    { port: 443, proto: 6 },
    { port: 1, to_port: 1024, proto: 6 },
    { port: 53, proto: 17 },
  ),
)
const scope = fc.constantFrom<Label[]>([], [], [PAY], [PAY, PROD], [PROD])
const rules: fc.Arbitrary<DatedRule[]> = fc
  .array(
    fc.record({
      type: fc.constantFrom<RuleType>('allow', 'allow', 'allow', 'deny', 'override_deny'),
      since: fc.constantFrom('2026-01-01', '2026-01-02'),
      consumers: fc.array(actor, { minLength: 1, maxLength: 2 }),
      providers: fc.array(actor, { minLength: 1, maxLength: 2 }),
      ingress_services: fc.array(service, { minLength: 1, maxLength: 2 }),
      unscoped_consumers: fc.boolean(),
      scopes: fc.array(scope, { minLength: 1, maxLength: 2 }),
    }),
    { minLength: 3, maxLength: 6 },
  )
  .chain((all) => fc.tuple(fc.constant(all), fc.option(fc.nat(all.length - 1), { freq: 2 })))
  // The same again, under another href.
  .map(([all, again]) => (again === null ? all : [...all, all[again]!]))
  .map((all) =>
    all.map(({ type, since, scopes, ...rule }, at): DatedRule => ({
      type,
      since,
      scopes: scopes.map((labels) => labels.map((one) => ({ label: one }))),
      rule: {
        href: `${DRAFT}/rule_sets/1/${type === 'allow' ? 'sec_rules' : 'deny_rules'}/${at + 1}`,
        enabled: true,
        ...rule,
        ...(type === 'allow'
          ? { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
          : { override: type === 'override_deny' }),
      },
      contents: { ...catalog, labelsOf: () => [PAY, PROD] },
    })),
  )

function judge(all: readonly DatedRule[]) {
  const steps = findRedundantRules(all)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

const counts: Record<string, number> = {}

t.test('rules are redundant exactly where every connection of theirs is decided by those that prove it', async (t) => {
  fc.assert(
    fc.property(rules, (all) => {
      const points = all.map(pointsOf)
      const union = (some: readonly number[], end: 'src' | 'dst') =>
        some.reduce((sum, at) => sum | points[at]![end], 0n)
      const isCovered = (at: number, some: readonly number[]) =>
        (['src', 'dst'] as const).every((end) => (points[at]![end] & ~union(some, end)) === 0n)
      const { redundant, undecided, anyToAny } = judge(all)
      if (undecided.length > 0) throw new Error('nothing is unclear here')

      const newestFirst = [...all.keys()].sort((a, b) =>
        all[a]!.since === all[b]!.since ? b - a : all[a]!.since < all[b]!.since ? 1 : -1,
      )
      const left = new Set(all.keys())
      const wanted: number[] = []
      for (const at of newestFirst) {
        left.delete(at)
        if (
          isCovered(
            at,
            [...left].filter((one) => DECIDES[all[at]!.type].includes(all[one]!.type)),
          )
        )
          wanted.push(at)
        else left.add(at)
      }
      t.same(
        redundant.map(({ rule }) => rule),
        wanted,
      )
      for (const { rule, by, kind } of redundant) {
        counts[kind] = (counts[kind] ?? 0) + 1
        if (by.length > 1) counts.together = (counts.together ?? 0) + 1
        t.ok(isCovered(rule, by), 'the proof holds')
        t.ok(
          by.every((one) => left.has(one) && DECIDES[all[rule]!.type].includes(all[one]!.type)),
          'and names what stays',
        )
        for (const one of by)
          t.notOk(
            isCovered(
              rule,
              by.filter((other) => other !== one),
            ),
            'nothing of it can be left out',
          )
        const types = new Set(by.map((one) => all[one]!.type))
        const expected =
          by.length === 0
            ? 'names_nobody'
            : by.length === 1 && types.has(all[rule]!.type)
              ? isCovered(by[0]!, [rule])
                ? 'duplicate'
                : 'covered'
              : all[rule]!.type === 'allow' && [...types].join() === 'override_deny'
                ? 'always_denied'
                : all[rule]!.type === 'deny' && types.has('allow') && !types.has('deny')
                  ? 'always_allowed'
                  : 'covered'
        t.equal(kind, expected)
      }
      const everything = [...all.keys()].filter((at) => all[at]!.type === 'allow' && isAnyToAny(all[at]!))
      t.same(anyToAny, everything)
    }),
    { numRuns: 300, seed: 19 },
  )
  for (const kind of ['duplicate', 'covered', 'always_denied', 'always_allowed', 'names_nobody', 'together'])
    t.ok((counts[kind] ?? 0) >= 10, `${kind}: ${counts[kind]}`)
})

/** Between workloads and addresses of every class, over every flow, whether or not anything is written there. */
function isAnyToAny({ rule, scopes }: DatedRule): boolean {
  const open = (side: 'consumers' | 'providers') =>
    rule[side].some((one) => one.ip_list?.href === lists[0]!.href) ||
    (rule[side].some((one) => one.actors === 'ams') &&
      (scopes.some((one) => one.length === 0) || (side === 'consumers' && rule.unscoped_consumers === true)))
  return (
    open('consumers') &&
    open('providers') &&
    rule.ingress_services.some((one) => 'href' in one && one.href === services[0]!.href)
  )
}
