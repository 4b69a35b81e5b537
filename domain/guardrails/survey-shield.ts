import type { PceClient } from '../../pce-client/index.js'
import type { ProtectedLabel } from '../../schemas/guardrails.js'
import { pickEvery } from '../inventory/fetch-every.js'
import { isWrittenInside, type PolicyObjects } from '../policy/match-rules.js'
import { INSIDE, outside } from '../scopes/place-object.js'
import type { Place, ReachingRule } from '../scopes/place.js'
import { surveyTerritory, type Territory } from '../scopes/territory.js'

const NO_SCOPES = { everything: true, grants: [], create: [] }
const SIDES = ['providers', 'consumers'] as const

/**
 * Finds the protected labels on the PCE. Returns a territory in which everything that touches none of them is inside,
 * and the protected labels that do not exist on the PCE and so have no effect there. The workloads with a protected
 * label are read only when rules are judged.
 * @throws the errors of the PCE client, and IncompleteListError if not all labels could be read.
 */
export async function surveyShield(
  pce: PceClient,
  wanted: readonly ProtectedLabel[],
  signal: AbortSignal,
): Promise<{ territory: Territory; missing: readonly ProtectedLabel[] }> {
  const survey = await surveyTerritory(pce, NO_SCOPES, { signal })
  const { labels } = survey
  const isNamed = (key: unknown, value: unknown) => wanted.some((one) => one.key === key && one.value === value)
  const hrefs = new Set(wanted.flatMap(({ key, value }) => labels.find(key, value)?.href ?? []))
  let reading: Promise<readonly Labels[]> | undefined
  const protectedOnes = () => (reading ??= readLabelSets(pce, hrefs, signal))
  const objects: PolicyObjects = {
    labelOf: (href) => labels.get(href),
    membersOf: (href) => [...(survey.membersOf(href) ?? [])].flatMap((label) => labels.get(label) ?? []),
    // The PCE sends a rule to the workloads that it names. An address in it only describes the other end of their
    // connections.
    covers: () => 'no',
    serviceOf: () => undefined,
    isAllServices: () => false,
  }
  const endOf = (own: Labels) => ({
    workload: 'a protected workload',
    labels: Object.fromEntries(own.flatMap((href) => labels.get(href) ?? []).map(({ key, value }) => [key, value])),
    ip: null,
    fqdn: null,
  })

  async function placeRules(rules: readonly ReachingRule[], scopes: Parameters<Shield['placeRules']>[1]) {
    if (rules.length === 0 || hrefs.size === 0) return []
    const ends = (await protectedOnes()).map(endOf)
    // It is not documented where a rule set without scopes applies. It may apply everywhere.
    const places = scopes.length === 0 ? [[]] : scopes.map((scope) => [...scope])
    return rules.map((rule): Place => {
      const whole = { providers: [], consumers: [], ingress_services: [], ...rule }
      for (const side of SIDES)
        for (const end of ends) {
          const answer = isWrittenInside({ scopes: places, rule: whole }, side, end, objects)
          if (answer === 'no') continue
          const which = Object.entries(end.labels).map(([key, value]) => `${key}=${value}`)
          const verb = answer === 'yes' ? 'reaches' : 'may reach'
          return outside(
            'protected_workload',
            `${verb} protected workloads, with the labels ${which.sort().join(', ')}`,
          )
        }
      return INSIDE
    })
  }

  return {
    missing: wanted.filter(({ key, value }) => labels.find(key, value) === undefined),
    territory: {
      ...survey,
      shield: {
        has: (href) => hrefs.has(href),
        isNamed,
        placeRules,
        async findBorne(added) {
          if (added.length === 0 || hrefs.size === 0) return []
          const borne = new Set((await protectedOnes()).flat())
          return added.filter((href) => borne.has(href))
        },
      },
    },
  }
}

type Shield = NonNullable<Territory['shield']>
/** The hrefs of a workload's labels. */
type Labels = readonly string[]

/**
 * Reads the workloads that have at least one of these labels. Returns each combination of labels that occurs on them
 * once.
 */
async function readLabelSets(pce: PceClient, wanted: ReadonlySet<string>, signal: AbortSignal): Promise<Labels[]> {
  const sets = new Map<string, Labels>()
  for (const href of wanted) {
    const query = { api: pce.workloads, params: { labels: JSON.stringify([[href]]) }, signal }
    await pickEvery(query, ({ labels, deleted }) => {
      const own = (labels ?? []).map((label) => label.href).sort()
      if (deleted !== true && own.some((label) => wanted.has(label))) sets.set(own.join(' '), own)
      return undefined
    })
  }
  return [...sets.values()]
}
