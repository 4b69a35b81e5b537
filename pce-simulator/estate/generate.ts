import { LRUCache } from 'lru-cache'
import type { Estate, EstateOptions } from '../model.js'
import { drawConversations } from './draw-conversations.js'
import { indexHosts, linkCallers, linkInternet, linkTiers } from './link-applications.js'
import { linkInfrastructure } from './link-infrastructure.js'
import { linkOddities } from './link-oddities.js'
import { linkBranches, linkBrowsing, linkEmployees, linkVisitors } from './link-people.js'
import { numberLabels } from './number-labels.js'
import { placeContainers } from './place-containers.js'
import { placeDevices } from './place-devices.js'
import { listSlots, placeServers } from './place-hosts.js'
import { placeOtherHosts, shareOut } from './place-other-hosts.js'
import { createRandom } from './random.js'
import { scale, type Relation } from './relation.js'
import { writePolicy } from './write-policy.js'

/**
 * Minimum number of workloads in an estate. A smaller estate has no room for an application, its callers and the
 * services they need.
 */
export const FEWEST_WORKLOADS = 20

const USERS = [
  { href: '/users/1', username: 'admin@example.com', full_name: 'Ada Admin' },
  { href: '/users/2', username: 'nina.network@example.com', full_name: 'Nina Network' },
  { href: '/users/3', username: 'sam.security@example.com', full_name: 'Sam Security' },
]

/**
 * The application with which demonstrations start. Its traffic is generated before the traffic of other applications.
 */
const SHOWCASE = 'payments|prod'

/**
 * Caches the latest estates, because a large one takes seconds to generate and a process rarely needs more than a few.
 * The parts that the caller may change are kept as JSON text, because parsing the text takes less than half the time of
 * structuredClone.
 */
const drawn = new LRUCache<string, { conversations: Estate['conversations']; text: string }, EstateOptions>({
  max: 4,
  memoMethod: (_key, _stale, { context }) => {
    const { conversations, ...rest } = draw(context)
    return { conversations, text: JSON.stringify(rest) }
  },
})

/**
 * Generates a believable organisation that depends only on the options, not on the clock or the platform. `workloads`
 * is the number of managed and unmanaged workloads together; `flows` is the number of rows that a traffic query without
 * filters returns for the whole period since January 2026.
 *
 * Estates with the same options share their conversations, which never change. The caller may modify everything else.
 *
 * Throws RangeError for fewer than FEWEST_WORKLOADS workloads or a negative number of flows.
 */
export function generateEstate({ seed, workloads, flows, orgId }: EstateOptions): Estate {
  const context = { seed, workloads, flows, orgId }
  const { conversations, text } = drawn.memo(JSON.stringify(context), { context })
  return { ...(JSON.parse(text) as Omit<Estate, 'conversations'>), conversations }
}

function draw(options: EstateOptions): Estate {
  const { seed, workloads, flows, orgId } = options
  if (!Number.isInteger(workloads) || workloads < FEWEST_WORKLOADS)
    throw new RangeError(`an estate has at least ${FEWEST_WORKLOADS} workloads`)
  if (!Number.isInteger(flows) || flows < 0) throw new RangeError('flows is a whole number, 0 or more')
  const random = createRandom(seed)
  const labels = numberLabels(orgId)
  const slots = listSlots()
  const others = shareOut(workloads)
  placeServers(random, labels, orgId, slots, workloads - others.laptops - others.appliances - others.strays)
  const otherHosts = placeOtherHosts(random, labels, orgId, others)
  const servers = slots.flatMap((slot) => slot.hosts)

  const hostsOf = indexHosts(slots)
  const everyHost = [...servers, ...otherHosts.strays, ...otherHosts.laptops]
  const relations: Relation[] = [
    ...scale(linkCallers(hostsOf), 20),
    ...scale(linkOddities(hostsOf, slots, otherHosts), 5),
    ...scale(linkInternet(hostsOf), 5),
    ...scale(linkTiers(hostsOf), 22),
    ...scale(linkInfrastructure(hostsOf, everyHost), 20),
    ...scale(linkEmployees(hostsOf, otherHosts.laptops), 10),
    ...scale(linkVisitors(hostsOf), 8),
    ...scale(linkBranches(hostsOf), 4),
    ...scale(linkBrowsing(otherHosts.laptops), 6),
  ]
  const showcased = ({ about }: Relation) => about.includes(SHOWCASE)
  const ordered = [...relations.filter(showcased), ...relations.filter((relation) => !showcased(relation))]
  return {
    labels: labels.labels,
    workloads: [...servers, ...otherHosts.laptops, ...otherHosts.appliances, ...otherHosts.strays].map(
      ({ workload }) => workload,
    ),
    ...writePolicy(orgId, labels),
    conversations: drawConversations(random, ordered, flows),
    users: USERS.map((user) => ({ ...user })),
    inventory: { ...placeContainers(options, labels), ...placeDevices(options) },
  }
}
