import { ToolError } from '../../schemas/errors.js'
import type { TrafficQuery, TrafficSelector } from '../../schemas/pce/traffic.js'
import { sameAddress } from '../inventory/match-addresses.js'
import type { TrafficTerm } from './resolve-traffic-term.js'

/** One side of a traffic query, and what of it remains to be done with the rows. */
export interface SidePlan {
  query: TrafficQuery['sources']
  /** Undefined when the PCE filters everything. */
  keeps?: (ip: string) => boolean
  appliedToRows: string[]
}

/**
 * Splits what the PCE can filter from what the rows must be tested for. Once an include names a network, all addresses of
 * that list are tested here: sent as blocks of their own they would narrow the query to themselves. Throws invalid_argument for
 * a network in one of several blocks (`nested`), where a row does not tell which block it came by.
 */
export function planSide(
  name: 'sources' | 'destinations',
  included: TrafficTerm[][],
  excluded: TrafficTerm[],
  nested: boolean,
): SidePlan {
  const networks = included.flat().filter((term) => term.network !== undefined)
  if (nested && networks.length > 0 && included.length > 1) {
    throw new ToolError(
      'invalid_argument',
      `include_${name} has the network ${networks[0]?.ref} in one of several blocks, which the PCE cannot filter by.`,
      { argument: `include_${name}` },
      { hint: 'Use one flat list, or an IP list that holds the network (iplist:<name>).' },
    )
  }
  const local = networks.length > 0 ? included.flat().filter(({ group }) => group === 'address') : []
  const tests = [...new Map(local.map((term) => [term.ref, term])).values()].map((term) => toTest(term))
  const refused = excluded.filter((term) => term.network !== undefined)
  const refusals = refused.map((term) => toTest(term))
  const blocks = included.map((block) => block.filter((term) => !local.includes(term)).flatMap(toSelector))
  const include = [...new Map(blocks.map((block) => [JSON.stringify(block), block])).values()]
  const matchesAny = nested
    ? (ip: string) => tests.every((test) => test(ip))
    : (ip: string) => tests.some((test) => test(ip))
  const keeps = (ip: string) => (tests.length === 0 || matchesAny(ip)) && !refusals.some((test) => test(ip))
  return {
    query: { include: include.length > 0 ? include : [[]], exclude: excluded.flatMap(toSelector) },
    ...(tests.length + refusals.length > 0 ? { keeps } : {}),
    appliedToRows: [
      ...[...new Set(local.map(({ ref }) => ref))].map((ref) => `include_${name} ${ref}`),
      ...refused.map(({ ref }) => `exclude_${name} ${ref}`),
    ],
  }
}

function toTest({ ref, network }: TrafficTerm): (ip: string) => boolean {
  return network?.matches ?? ((ip) => sameAddress(ip, ref))
}

function toSelector({ selector }: TrafficTerm): TrafficSelector[] {
  return selector === undefined ? [] : [selector]
}
