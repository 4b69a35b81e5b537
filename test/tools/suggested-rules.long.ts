/**
 * suggest-rule in a closed loop on the simulator: what it suggests is written and provisioned; then the flow is allowed, and nothing else
 * has changed that the answer had not named.
 */
import t, { type Test } from 'tap'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { PolicyView } from '../../pce-simulator/model.js'
import { tools } from '../../tools/index.js'
import {
  casesOf,
  decisionOf,
  evaluatorOf,
  flowArguments,
  flowsOf,
  hostsOf,
  OUTSIDE,
  SEED,
  startCase,
  viewOf,
  type AskedPort,
  type Evaluate,
} from './explained-world.js'
import { ALL_SERVICES, AMS, ANY_LIST } from './hand-made.js'
import type { Bench, Json } from './harness.js'

const SUGGESTIONS = 200
/** A rule is suggested for what passes only because of a mode, too. */
const BY_RULES = { needsRules: true }

/** Writes a suggestion as its arguments say; without the tool for single rules, as create-ruleset resolves its rule. */
async function writeSuggestion(bench: Bench, { create_iplist: list, create_service: service, ...rest }: Json) {
  if (list !== undefined) await bench.ok('create-iplist', list)
  if (service !== undefined) await bench.ok('create-service', service)
  if (rest.create_ruleset !== undefined) return bench.ok('create-ruleset', rest.create_ruleset)
  const { ruleset_href: href, ...rule } = rest.create_rule
  if (tools.some(({ name }) => name === 'create-rule')) return bench.ok('create-rule', rest.create_rule)
  const plan = await bench.ok('create-ruleset', { name: 'never written', scopes: [], rules: [rule], dry_run: true })
  return bench.pce.rules.create(plan.requests[1].body, href)
}

/** Every pair of ends with its decision. */
function decideAll(evaluate: Evaluate, ends: readonly string[], on: AskedPort): Map<string, string> {
  const pairs = ends.flatMap((from) => ends.flatMap((to) => (from === to ? [] : [[from, to] as const])))
  return new Map(pairs.map(([from, to]) => [`${from} > ${to}`, decisionOf(evaluate(from, to, on))]))
}

const changesOf = (before: Map<string, string>, after: Map<string, string>) =>
  [...before].flatMap(([pair, was]) => (after.get(pair) === was ? [] : [pair]))

/** A rule set that allows everything to everyone. */
const EVERYTHING = {
  href: '/everything',
  name: 'everything',
  enabled: true,
  scopes: [[]],
  rules: [
    {
      href: '/everything/1',
      enabled: true,
      providers: [AMS, ANY_LIST],
      consumers: [AMS, ANY_LIST],
      ingress_services: [ALL_SERVICES],
      unscoped_consumers: true,
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    },
  ],
} as unknown as RuleSet

const withEverything = (view: PolicyView): PolicyView => ({ ...view, ruleSets: [...view.ruleSets, EVERYTHING] })

t.test('a suggested rule allows its flow, and nothing that was not named', async (t) => {
  const counts: Record<string, number> = {
    suggested: 0,
    beyond: 0,
    existing: 0,
    new: 0,
    lists: 0,
    no_rule_helps: 0,
    no_ven: 0,
  }
  const add = (name: string, count = 1) => (counts[name] = (counts[name] ?? 0) + count)
  for (let at = 0; counts.suggested! < SUGGESTIONS && at < 200; at++) {
    const [one] = casesOf(1, SEED + 1_000 + at)
    await t.test(`estate ${at}`, async (t) => {
      const bench = await startCase(t, one!)
      const ends = [...hostsOf(one!), ...OUTSIDE]
      for (const { from, to, on: all } of flowsOf(one!, SEED + at)) {
        if (counts.suggested! >= SUGGESTIONS) return
        const { process: _process, service: _service, ...on } = all
        const view = viewOf(bench, 'draft')
        const truth = evaluatorOf(bench, view, BY_RULES)
        const answer = await bench.ok('suggest-rule', flowArguments(from, to, on))
        const shown = `${at} ${from} > ${to} ${JSON.stringify(on)}: ${JSON.stringify(answer)}`
        const before = decideAll(truth, ends, on)
        const asked = `${from} > ${to}`
        if (answer.status === 'already_allowed' || answer.status === 'allowed_when_provisioned') {
          t.equal(before.get(asked), 'allowed', shown)
          add(answer.status)
          continue
        }
        if (answer.status === 'no_rule_helps') {
          if (answer.message === 'No end has a VEN, so no rule has an effect on it.') {
            t.equal(truth(from, to, on).decision, 'unknown', shown)
            add('no_ven')
            continue
          }
          add('no_rule_helps')
          if (answer.message.includes('override deny'))
            t.ok(before.get(asked) !== 'allowed' || answer.draft.verdict === 'uncertain', shown)
          if (answer.draft.verdict !== 'uncertain') {
            const anyway = decisionOf(evaluatorOf(bench, withEverything(view), BY_RULES)(from, to, on))
            t.not(anyway, 'allowed', `no allow rule helps: ${shown}`)
          }
          continue
        }
        if (answer.draft.verdict === 'uncertain') continue

        // What else changes by provisioning is not the rule's doing.
        const pending = bench.simulator.state.pendingHrefs()
        if (pending.length > 0) await bench.pce.provisionPolicyChanges('so far', pending)
        await writeSuggestion(bench, answer.suggestion)
        await bench.pce.provisionPolicyChanges('suggested', bench.simulator.state.pendingHrefs())
        const evaluate = evaluatorOf(bench, viewOf(bench, 'active'), BY_RULES)
        const after = decideAll(evaluate, ends, on)
        t.equal(after.get(asked), 'allowed', `it is allowed: ${shown}`)
        checkChanges(t, { changed: changesOf(before, after), asked, hosts: hostsOf(one!), answer, shown })
        for (const other of [{ port: 9999, proto: 6 }, { port: 9999, proto: 17 }, { proto: 50 }]) {
          const changed = changesOf(decideAll(truth, ends, other), decideAll(evaluate, ends, other))
          t.same(changed, [], `nothing on another port: ${shown}`)
        }
        add('suggested')
        add('by_mode', answer.message.startsWith('It flows today') ? 1 : 0)
        add('beyond', answer.opens.beyond > 0 ? 1 : 0)
        add(answer.suggestion.create_rule === undefined ? 'new' : 'existing')
        add('lists', JSON.stringify(answer.suggestion).includes('iplist:') ? 1 : 0)
      }
    })
  }
  t.pass(JSON.stringify(counts))
  t.ok(counts.suggested! >= SUGGESTIONS, 'as many as promised')
  for (const word of ['beyond', 'existing', 'new', 'lists', 'no_ven', 'by_mode']) t.ok(counts[word]! > 5, word)
  t.ok(counts.no_rule_helps! > 1, 'an override deny, which few of these estates have between two hosts')
})

/** What changed is what was named: between hosts exactly, of addresses those of a named range. */
function checkChanges(
  t: Test,
  {
    changed,
    asked,
    hosts,
    answer,
    shown,
  }: { changed: string[]; asked: string; hosts: string[]; answer: Json; shown: string },
): void {
  const isHost = (pair: string) => pair.split(' > ').every((end) => hosts.includes(end))
  const named = new Set<string>([
    asked,
    ...answer.opens.examples.map(({ source, destination }: Json) => `${source} > ${destination}`),
  ])
  const between = changed.filter(isHost)
  const isWhole = answer.opens.examples.length < 25
  t.ok(isWhole, `all of them are named: ${shown}`)
  if (answer.opens.uncertain === 0)
    t.same(between.sort(), [...named].filter(isHost).sort(), `between hosts exactly what was named: ${shown}`)
  else
    t.same(
      between.filter((pair) => !named.has(pair)),
      [],
      `between hosts nothing else: ${shown}`,
    )
  for (const pair of changed) {
    if (isHost(pair) || named.has(pair)) continue
    const [from, to] = pair.split(' > ') as [string, string]
    const isNamed = answer.opens.examples.some(
      ({ source, destination }: Json) =>
        (source === from || (!hosts.includes(from) && !hosts.includes(source))) &&
        (destination === to || (!hosts.includes(to) && !hosts.includes(destination))),
    )
    t.ok(isNamed, `${pair} was named: ${shown}`)
  }
}
