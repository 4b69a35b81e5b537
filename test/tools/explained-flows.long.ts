/** explain-flow against the simulator: what it says of random flows is what the evaluator decides, pair by pair and counted. */
import t from 'tap'
import {
  casesOf,
  decisionOf,
  evaluatorOf,
  FLOWS_OF_CASE,
  flowArguments,
  flowsOf,
  PORTS,
  SEED,
  startCase,
  viewOf,
} from './explained-world.js'
import type { Json } from './harness.js'

const FLOWS = 500
const KINDS = ['override_deny', 'allow', 'deny']

t.test('explain-flow says of random flows what the simulator decides', async (t) => {
  const counts: Record<string, number> = { flows: 0, certain: 0, rules: 0, pending: 0 }
  const add = (name: string, count = 1) => (counts[name] = (counts[name] ?? 0) + count)
  for (const [at, one] of casesOf(FLOWS / FLOWS_OF_CASE, SEED).entries()) {
    await t.test(`estate ${at}`, async (t) => {
      // More of them pending than chance has it.
      const bench = await startCase(t, at % 2 === 0 ? one : { ...one, toggled: [...Array(12).keys()] })
      const truth = {
        active: evaluatorOf(bench, viewOf(bench, 'active')),
        draft: evaluatorOf(bench, viewOf(bench, 'draft')),
      }
      for (const { from, to, on } of flowsOf(one, SEED + at)) {
        const answer = await bench.ok('explain-flow', { ...flowArguments(from, to, on), lookback_days: 0 })
        const shown = `${at}: ${answer.flow} ${JSON.stringify(on)}: ${JSON.stringify(answer)}`
        add('flows')
        for (const version of ['active', 'draft'] as const) {
          const verdict = truth[version](from, to, on)
          const { verdict: said } = answer[version]
          if (said !== 'uncertain') {
            add('certain')
            add(said)
            if (said !== decisionOf(verdict)) t.fail(`${version} ${decisionOf(verdict)}, said ${said}: ${shown}`)
          }
          const found = answer.rules.filter((rule: Json) => rule.in.includes(version)).map(({ href }: Json) => href)
          const deciding = [...verdict.overrideDenyRules, ...verdict.allowRules, ...verdict.denyRules]
          add('rules', deciding.length)
          const left = deciding
            .map((href) => href.replace('/active/', '/draft/'))
            .filter((href) => !found.includes(href))
          if (left.length > 0) t.fail(`${version} is not shown ${left.join(' ')}: ${shown}`)
        }
        if (answer.active.verdict !== answer.draft.verdict) add('pending')
        const order = answer.rules.map(({ rule_type: type }: Json) => KINDS.indexOf(type))
        if (order.some((kind: number, place: number) => kind < (order[place - 1] ?? 0))) t.fail(`order: ${shown}`)
        if (answer.pce_check.agrees !== true) t.fail(`the PCE disagrees: ${shown}`)
      }
    })
  }
  t.pass(JSON.stringify(counts))
  t.ok(counts.flows! >= FLOWS, 'as many as promised')
  t.ok(counts.certain! >= counts.flows! * 1.2, 'most of them certain')
  for (const word of ['allowed', 'potentially_blocked', 'blocked', 'rules'])
    t.ok(counts[word]! > 20, `${word}: ${counts[word]}`)
})

t.test('of labels and lists it counts every pair as the simulator decides it', async (t) => {
  const sets: [string | string[], (labels: string) => boolean][] = [
    ['app=crm', (labels) => labels.includes('app=crm')],
    [['app=pay', 'env=prod'], (labels) => labels.includes('app=pay env=prod')],
    ['env=prod', (labels) => labels.includes('env=prod')],
  ]
  const counts = { exact: 0, split: 0, bounded: 0 }
  for (const [at, one] of casesOf(40, SEED + 1).entries()) {
    await t.test(`estate ${at}`, async (t) => {
      const bench = await startCase(t, one)
      const truth = evaluatorOf(bench, viewOf(bench, 'active'))
      for (const [source, isSource] of sets) {
        for (const [destination, isDestination] of sets) {
          const on = PORTS[(at * 3) % PORTS.length]!
          const answer = await bench.ok('explain-flow', { ...flowArguments(source, destination, on), lookback_days: 0 })
          const of = (test: (labels: string) => boolean) =>
            Object.entries(one.estate.hosts ?? {}).flatMap(([name, { labels }]) => (test(String(labels)) ? [name] : []))
          const real: Record<string, number> = {}
          for (const from of of(isSource)) {
            for (const to of of(isDestination)) {
              if (from === to) continue
              const word = decisionOf(truth(from, to, on))
              real[word] = (real[word] ?? 0) + 1
            }
          }
          const said: Record<string, number> = {}
          for (const { active, pairs } of answer.pairs.outcomes) said[active] = (said[active] ?? 0) + pairs
          const { uncertain = 0, ...certain } = said
          if (answer.active.verdict === 'split') counts.split += 1
          if (uncertain === 0) {
            counts.exact += 1
            t.same(certain, real, answer.flow)
          } else {
            counts.bounded += 1
            for (const [word, count] of Object.entries(certain))
              t.ok(count <= (real[word] ?? 0), `${answer.flow}: ${JSON.stringify({ said, real })}`)
          }
        }
      }
    })
  }
  t.pass(JSON.stringify(counts))
  t.ok(counts.exact > 100 && counts.split > 20)
})
