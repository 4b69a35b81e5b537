/**
 * The matcher of policy against the simulator's, which was written apart: over random rules and connections they agree wherever
 * the matcher is definite, and it is undecided only where the rules have something that a flow row does not tell.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { Label } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { compilePolicy, type CompiledRule, type RuleKind } from '../../pce-simulator/policy/compile-rules.js'
import type { ServiceFacts } from '../../pce-simulator/policy/match-services.js'
import { parseAddress } from '../../pce-simulator/policy/match-addresses.js'
import type { EndFacts } from '../../pce-simulator/policy/match-actors.js'
import { rulesInForce } from '../../domain/policy/load-snapshot.js'
import { matchRules, someWorkloadWith, type End, type RuleMatch } from '../../domain/policy/match-rules.js'
import { UNDECIDED, isUnknown, type Answer, type Reason } from '../../domain/policy/three-valued.js'
import { CATALOG, connection, LABELS, ruleSets, viewOf, type RandomEnd, type RandomFlow } from './random-policy.js'

const RUNS = { numRuns: 1500, seed: 20261122 }
const KINDS: RuleKind[] = ['allow', 'deny', 'override_deny']
const LABEL_BY_HREF = new Map(LABELS.map((label) => [label.href, label]))

const asEnd = ({ workload, labels, ip, fqdn }: RandomEnd): End => ({
  ...someWorkloadWith(labels),
  isSome: false,
  workload,
  ip,
  fqdn,
})

/** What a flow row does not tell of its ends: on Windows the server is the program a rule may name, the client another one. */
const HOSTS: readonly Pick<ServiceFacts, 'provider' | 'consumer'>[] = [
  {
    provider: { os: 'windows', seen: true, processName: 'smb.exe', serviceName: null },
    consumer: { os: 'windows', seen: true, processName: 'other.exe', serviceName: null },
  },
  {
    provider: { os: 'linux', seen: true, processName: 'smbd', serviceName: null },
    consumer: { os: 'linux', seen: true, processName: 'curl', serviceName: null },
  },
]

/**
 * What the simulator says of rules at each end, in the words of the matcher; null where it depends on which program runs there.
 */
function judgedBySimulator(
  sets: readonly RuleSet[],
  kind: RuleKind,
  ends: Ends,
): Record<keyof RuleMatch, boolean | null> {
  const policy = compilePolicy(viewOf(sets), LABEL_BY_HREF)
  const factsOf = ({ workload, labels, ip, fqdn }: RandomEnd): EndFacts => ({
    workload,
    labels: new Set(labels.map(({ href }) => href)),
    ipLists: new Set([...policy.ipLists].filter(([, covers]) => covers(parseAddress(ip), fqdn)).map(([key]) => key)),
  })
  const [source, destination] = [factsOf(ends.source), factsOf(ends.destination)]
  const any = (test: (rule: CompiledRule) => boolean) => {
    const [windows, linux] = HOSTS.map((hosts) => {
      const facts = { ...ends.flow, icmpType: null, icmpCode: null, ...hosts }
      return policy.rules.some((rule) => rule.kind === kind && test(rule) && rule.matchesService(facts))
    }) as [boolean, boolean]
    return windows === linux ? windows : null
  }
  const from = ({ consumers }: CompiledRule) => consumers.asWorkload(source)
  const to = ({ providers }: CompiledRule) => providers.asWorkload(destination)
  return {
    atDestination: any((rule) => to(rule) && (from(rule) || rule.consumers.asAddress(source))),
    byAddress: any((rule) => to(rule) && rule.consumers.asAddress(source)),
    atSource: any((rule) => from(rule) && (to(rule) || rule.providers.asAddress(destination))),
    toAddress: any((rule) => from(rule) && rule.providers.asAddress(destination)),
  }
}

function holds<T>(t: Test, property: fc.IProperty<T>): void {
  const details = fc.check(property, RUNS)
  t.notOk(details.failed, fc.defaultReportMessage(details) ?? `held for ${details.numRuns} policies`)
}

interface Ends {
  source: RandomEnd
  destination: RandomEnd
  flow: RandomFlow
}

const ask = (match: RuleMatch, source: End, { port, proto }: RandomFlow): [keyof RuleMatch, Answer][] =>
  (['atDestination', 'byAddress', 'atSource', 'toAddress'] as const).map((end) => [
    end,
    match[end](source, port, proto),
  ])

const text = (answer: Answer) => (isUnknown(answer) ? 'unknown' : answer)

t.test('wherever the matcher is certain, the simulator agrees', (t) => {
  const seen = new Map<string, number>()
  let byProgram = 0
  holds(
    t,
    fc.property(ruleSets(1, 3), connection, (sets, ends) => {
      for (const kind of KINDS) {
        const rules = rulesInForce({ ruleSets: sets, boundaries: [] }, kind)
        const truth = judgedBySimulator(sets, kind, ends)
        for (const [end, answer] of ask(
          matchRules(rules, asEnd(ends.destination), CATALOG),
          asEnd(ends.source),
          ends.flow,
        )) {
          seen.set(`${end} ${text(answer)}`, (seen.get(`${end} ${text(answer)}`) ?? 0) + 1)
          if (truth[end] === null) byProgram++
          if (!isUnknown(answer) && (answer === 'yes') !== truth[end])
            throw new Error(`${kind} ${end}: ${answer}, not ${truth[end]}`)
        }
      }
    }),
  )
  const rarest = Math.min(
    ...['atDestination', 'byAddress', 'atSource', 'toAddress'].flatMap((end) =>
      ['yes', 'no', 'unknown'].map((answer) => seen.get(`${end} ${answer}`) ?? 0),
    ),
  )
  t.ok(rarest > 15, `every answer is given often enough to be tested (${rarest})`)
  t.ok(byProgram > 30, `programs decide often enough to be tested (${byProgram})`)
  t.end()
})

t.test('an answer for some workload of an application holds for each of them', (t) => {
  holds(
    t,
    fc.property(ruleSets(1, 3), connection, (sets, ends) => {
      const known = ends.destination.labels.filter(({ key }: Label) => key !== 'role')
      if (ends.destination.workload === null || known.length < 2) return
      for (const kind of KINDS) {
        const rules = rulesInForce({ ruleSets: sets, boundaries: [] }, kind)
        const truth = judgedBySimulator(sets, kind, ends)
        for (const [end, answer] of ask(
          matchRules(rules, someWorkloadWith(known), CATALOG),
          asEnd(ends.source),
          ends.flow,
        ))
          if (!isUnknown(answer) && (answer === 'yes') !== truth[end])
            throw new Error(`${kind} ${end}: ${answer}, not ${truth[end]}`)
      }
    }),
  )
  t.end()
})

/** What in the rules or the connection leaves no choice but to be undecided. */
const EXCUSES: Partial<Record<Reason, RegExp>> = {
  domain_name: /ip_lists\/5"/,
  ip_list: /ip_lists\/5"/,
  exclusion: /"exclusion":true/,
  selector: /container_host/,
  virtual_service: /virtual_service/,
  network: /non_brn/,
  process: /services\/[57]"/,
  user: /security_principals\/1/,
  encryption: /"sec_connect":true/,
  stateless: /"stateless":true/,
  resolution: /virtual_services/,
  label_group: /label_groups\/4"/,
  icmp_type: /services\/4"/,
}

t.test('the matcher is undecided only about what a flow row does not reveal', (t) => {
  const used = new Set<Reason>()
  holds(
    t,
    fc.property(ruleSets(1, 2), connection, (sets, ends) => {
      const told = JSON.stringify([sets, ends.flow])
      for (const kind of KINDS) {
        const rules = rulesInForce({ ruleSets: sets, boundaries: [] }, kind)
        for (const [end, answer] of ask(
          matchRules(rules, asEnd(ends.destination), CATALOG),
          asEnd(ends.source),
          ends.flow,
        )) {
          for (const reason of isUnknown(answer) ? answer.unknown : []) {
            used.add(reason)
            if (EXCUSES[reason]?.test(told) !== true)
              throw new Error(`${kind} ${end} is undecided because of ${UNDECIDED[reason]}`)
          }
        }
      }
    }),
  )
  t.same(
    [...used].sort(),
    Object.keys(EXCUSES)
      .filter((reason) => reason !== 'ip_list')
      .sort(),
    'every reason was met',
  )
  t.end()
})
