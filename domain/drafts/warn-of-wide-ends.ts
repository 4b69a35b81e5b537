import { PceError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Actor, DenyRule, IngressService, Rule } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { readableEnds } from '../inventory/require-rule-shape.js'
import { clipText, quote } from '../text/escape-text.js'
import { mapBounded, workInTurns } from '../text/pace-work.js'
import type { PlannedChange } from './plan-rules.js'
import type { ResolvedService } from './resolve-services.js'
import { type Entry, entriesOf, measureLists, measurePorts } from './warn-of-wide-list.js'

/** A rule as it will be after the write. */
interface WrittenRule {
  providers: readonly Actor[]
  consumers: readonly Actor[]
  services: readonly (ResolvedService | IngressService)[]
  deny: boolean
}

/** Maximum number of IP lists named in a warning, and maximum number of characters of each name. */
const MOST_NAMED = 5
const LONGEST_NAME = 60
/** Maximum number of concurrent requests for IP lists and services. */
const IN_FLIGHT = 4

/**
 * Warns if the IP lists on a side of a rule together cover practically any address, or thousands of public addresses.
 * Threshold and wording are the same as when such an IP list is written. The IP lists are read unless the call has
 * already looked them up; if they cover that much, the services are read as well. The warnings also say what could not
 * be read.
 */
export async function warnOfWideEnds(
  lookups: PolicyLookups,
  rule: WrittenRule,
  signal: AbortSignal,
): Promise<string[]> {
  const warnings: string[] = []
  for (const side of ['providers', 'consumers'] as const) {
    try {
      warnings.push(...(await warnOfSide(lookups, rule, side, signal)))
    } catch (error) {
      if (!(error instanceof PceError || error instanceof ToolError) || signal.aborted) throw error
      warnings.push(`Whether the ${side} are any address in effect is not known: ${error.message}`)
    }
  }
  return warnings
}

/**
 * Works like `warnOfWideEnds` for a changed rule. It warns only if the change concerns a side or the services, or
 * enables the rule. Fields that the change leaves out are taken from the stored rule.
 */
export async function warnOfWideChange(
  lookups: PolicyLookups,
  current: Rule | DenyRule,
  change: PlannedChange,
  { deny, signal }: { deny: boolean; signal: AbortSignal },
): Promise<string[]> {
  const { providers, consumers, services, body } = change
  if (body.enabled !== true && [providers, consumers, services].every((part) => part === undefined)) return []
  const stored = readableEnds(current)
  const rule = {
    providers: providers ?? stored.providers,
    consumers: consumers ?? stored.consumers,
    services: services ?? stored.ingress_services,
    deny,
  }
  return warnOfWideEnds(lookups, rule, signal)
}

async function warnOfSide(
  lookups: PolicyLookups,
  rule: WrittenRule,
  side: 'providers' | 'consumers',
  signal: AbortSignal,
): Promise<string[]> {
  const hrefs = new Set(rule[side].flatMap(({ ip_list: list }) => list?.href ?? []))
  const lists = await mapBounded(
    [...hrefs],
    IN_FLIGHT,
    async (href) => (await lookups.byHref('ip_lists', href)) as IpList,
  )
  const width = await workInTurns(measureLists(lists), signal)
  if (width === undefined) return []
  const names = lists.slice(0, MOST_NAMED).map(({ name }) => quote(clipText(name, LONGEST_NAME)))
  const named = `${names.join(', ')}${lists.length > MOST_NAMED ? ` and ${lists.length - MOST_NAMED} more` : ''}`
  const what = width.size === 'any' ? 'any address in effect' : 'thousands of addresses beyond private ranges'
  const whom = width.size === 'any' ? 'nearly everybody' : 'whoever has one of them'
  return [
    `The ${side} are ${what}: ${named} ${lists.length === 1 ? 'has' : 'together cover'} ${width.shares}. The rule ${rule.deny ? 'denies' : 'allows'} ${whom}${await describePorts(lookups, rule.services)}.`,
  ]
}

async function describePorts(lookups: PolicyLookups, services: WrittenRule['services']): Promise<string> {
  const entries = await mapBounded(services, IN_FLIGHT, async (one): Promise<Entry[]> => {
    if ('service' in one) return entriesOf(one.service)
    if ('ports' in one) return [{ ...one.ports }]
    return 'href' in one ? entriesOf((await lookups.byHref('services', one.href)) as Service) : [{ ...one }]
  })
  const width = measurePorts(entries.flat())
  return width === undefined ? '' : `, on every port in effect (${width.shares})`
}
