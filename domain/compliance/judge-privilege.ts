import { toDraftHref } from '../inventory/parse-href.js'
import { isBroad } from './classify-end.js'
import { breadthOf, concerns, enabled, isEveryService, selects } from './rule-reach.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

/**
 * Allow rules permit no more than is needed. One that opens every service to everybody fails; one that opens some services to
 * everybody, or every service to all workloads, is a warning. All services inside the application are its ringfence's own.
 */
export const leastPrivilege: Evaluator = evaluator(
  {
    name: 'least privilege',
    lookedAt: 'consumers and services of the allow rules in force that concern it',
    needs: ['policy', 'ipLists'],
  },
  ({ policy, ipLists }, { scope }) => {
    const { keyOf, anyIpLists } = policy.facts
    const broad = new Set([...anyIpLists, ...ipLists.filter(isBroad).map(({ href }) => toDraftHref(href))])
    const judged = policy.ruleSets
      .filter((ruleSet) => ruleSet.enabled && concerns(ruleSet, scope, keyOf))
      .flatMap((ruleSet) =>
        enabled(ruleSet.rules)
          .filter(({ providers }) => selects(providers, scope, keyOf))
          .map((rule) => ({
            href: rule.href,
            from: breadthOf(rule, ruleSet, broad),
            everything: isEveryService(rule.ingress_services, policy),
          })),
      )
    const open = judged.filter(({ from, everything }) => from === 'anybody' && everything)
    const wide = judged.filter(({ from, everything }) => (from === 'anybody') !== everything && from !== 'named')
    const counts = {
      allow_rules: judged.length,
      everything_from_anybody: open.length,
      some_services_from_anybody: wide.filter(({ from }) => from === 'anybody').length,
      everything_from_all_workloads: wide.filter(({ from }) => from === 'all workloads').length,
    }
    if (judged.length === 0) return notAssessed('No allow rule in force concerns it.', { counts })
    const text = `${found(counts.everything_from_anybody, 'rule', 'opening every service to everybody')}${found(counts.some_services_from_anybody, 'rule', 'opening some services to everybody')}${found(counts.everything_from_all_workloads, 'rule', 'opening every service to all workloads')}`
    return {
      status: open.length > 0 ? 'FAIL' : wide.length > 0 ? 'WARNING' : 'PASS',
      detail: text.trim() || `None of ${judged.length} allow rules is that wide.`,
      evidence: {
        counts,
        ...(open.length + wide.length > 0 && {
          rules: [...open, ...wide].slice(0, MOST_EVIDENCE).map(({ href }) => href),
        }),
      },
    }
  },
)
