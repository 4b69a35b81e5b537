import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, type PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { LabelOut, LabelsOut } from '../../schemas/label-reference.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { PolicyVersionInput, PolicyVersionOut } from '../../schemas/search-filters.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { scanWhole } from '../../domain/inventory/fetch-every.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { readPolicyVersion, requirePolicyVersion } from '../../domain/inventory/policy-version.js'
import { readKubernetesWorkloads, tellUnread } from '../../domain/inventory/kubernetes-workloads.js'
import { isManaged } from '../../domain/inventory/workloads.js'
import { compileName } from '../../domain/policy/compile-name.js'
import {
  isEmpty,
  matchAddresses,
  readAsked,
  writeInterval,
  writeRange,
  type AddressMatch,
  type AskedAddresses,
  type Hold,
} from '../../domain/policy/hold-addresses.js'
import { sizeOf } from '../../domain/policy/intervals.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { adviseOnRows, mostRowsShown, showSections, Truncation } from '../answers/byte-budget.js'
import { showLabelOf } from '../answers/show-label.js'

/** Default maximum number of rows per list. */
const MOST_ROWS = 10
/** Maximum number of list entries named in each field of a row. */
const MOST_NAMED = 10

const HOLDS = ['whole', 'part', 'uncertain', 'excluded'] as const

const ListRow = Type.Object({
  name: Type.String(),
  href: Type.String(),
  holds: Type.String({
    description:
      'whole: all of it; part: some; excluded: none, because exclusions take out what its ranges include; uncertain: ranges of it cannot be read',
  }),
  ranges: Type.Optional(
    Type.Array(Type.String(), { description: 'Its ranges that have any of it, as written; ! in front excludes' }),
  ),
  held: Type.Optional(Type.Array(Type.String(), { description: 'Of part and uncertain: the addresses it has of it' })),
  held_addresses: Type.Optional(Type.String({ description: 'How many these are, in digits' })),
  excluded: Type.Optional(Type.Array(Type.String(), { description: 'Addresses of it that exclusions take out' })),
  names: Type.Optional(Type.Array(Type.String(), { description: 'Its domain names that match, as written' })),
  entries_total: Type.Optional(Type.Integer({ description: 'Of ranges or names, where more match than are shown' })),
  update_type: Type.Optional(Type.String({ description: 'Pending change' })),
  note: Type.Optional(Type.String({ description: 'What is not certain' })),
})

const WorkloadRow = Type.Object({
  name: Type.Union([Type.String(), Type.Null()]),
  hostname: Type.Optional(Type.String()),
  href: Type.String(),
  managed: Type.Boolean(),
  addresses: Type.Array(Type.String(), { description: 'Of its interfaces, those asked about' }),
  labels: LabelsOut(LabelOut, 'As key=value'),
})
type WorkloadRow = Static<typeof WorkloadRow>

const output = Type.Object({
  message: Type.String({ description: 'The answer in a sentence or two' }),
  ...PolicyVersionOut,
  asked: Type.Object(
    {
      addresses: Type.Optional(Type.String({ description: 'As understood: an address, a network or first-last' })),
      address_count: Type.Optional(Type.String({ description: 'In digits' })),
      fqdn: Type.Optional(Type.String({ description: 'Domain name' })),
    },
    { description: 'What was looked for' },
  ),
  ip_lists: Type.Array(ListRow, { description: 'Those that have any of it: whole first, the narrowest list first' }),
  ip_lists_total: Type.Integer({ description: 'All there are, shown or not' }),
  ip_lists_analysed: Type.Integer({ description: 'IP lists of this version that were looked at' }),
  lists_with_names: Type.Optional(
    Type.Integer({ description: 'Of the others, those with domain names: what these resolve to is not known' }),
  ),
  workloads: Type.Optional(Type.Array(WorkloadRow, { description: 'With such an address at an interface' })),
  workloads_total: Type.Optional(Type.Integer({ description: 'All there are, shown or not' })),
  workloads_unmanaged: Type.Optional(Type.Integer({ description: 'Of these, those without a VEN' })),
  ...Truncation,
})

export default defineTool({
  name: 'get-ip-list-matches',
  summary: 'Which IP lists and workloads have an address, range or domain name, wholly or in part.',
  effect: 'read',
  reads: 'shown',
  toolset: 'rules-plus',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: { atMost: 7 },
  input: Type.Object(
    {
      address: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 100,
          description: '10.1.2.3, 10.0.0.0/8 or 10.0.0.1-10.0.0.9; IPv6 too',
          listed: 'IP, CIDR or first-last',
        }),
      ),
      fqdn: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 255,
          description: 'Domain name, in place of address',
          listed: '',
        }),
      ),
      ...PolicyVersionInput,
      detail_level: DetailLevel('full: more rows'),
    },
    { additionalProperties: false },
  ),
  output,
  example: { address: '198.51.100.0/24' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { address, fqdn, policy_version: version, detail_level: detail = 'standard' } = args
    const policyVersion = readPolicyVersion(version)
    const asked = readQuestion(address, fqdn)
    await requirePolicyVersion(pce, policyVersion, signal)
    const most = mostRowsShown(detail)
    const lists = await findLists(ctx, policyVersion, asked)
    const workloads = typeof asked === 'string' ? undefined : await findWorkloads(ctx, asked, most)
    const what = typeof asked === 'string' ? asked : writeInterval(asked.family, asked)
    return showSections(
      {
        message: describe(
          typeof asked === 'string' ? `The name ${quote(asked)}` : what,
          policyVersion,
          lists,
          workloads,
        ),
        policy_version: String(policyVersion),
        asked:
          typeof asked === 'string' ? { fqdn: asked } : { addresses: what, address_count: String(sizeOf([asked])) },
        ip_lists_total: lists.rows.length,
        ip_lists_analysed: lists.analysed,
        ...(lists.named > 0 && { lists_with_names: lists.named }),
        ...(workloads && { workloads_total: workloads.total, workloads_unmanaged: workloads.unmanaged }),
      },
      {
        ip_lists: { rows: lists.rows, total: lists.rows.length },
        ...(workloads && { workloads: { rows: workloads.rows, total: workloads.total } }),
      },
      {
        detail,
        limits,
        standard: MOST_ROWS,
        hint: (limit, isFull) =>
          `Each list is cut to ${limit} rows; ${adviseOnRows(detail, isFull, 'a narrower address has fewer.')}`,
      },
    )
  },
})

/**
 * Converts the arguments to the addresses or the domain name in question. Throws missing_identifier,
 * conflicting_identifiers, invalid_argument.
 */
function readQuestion(address: string | undefined, fqdn: string | undefined): AskedAddresses | string {
  const both = { arguments: ['address', 'fqdn'] }
  if (address !== undefined && fqdn !== undefined)
    throw new ToolError('conflicting_identifiers', 'Give address or fqdn, not both: they are two questions.', both)
  if (fqdn !== undefined) return fqdn.trim()
  if (address === undefined)
    throw new ToolError('missing_identifier', 'Say what to look for: give address or fqdn.', both)
  const asked = readAsked(address)
  if (typeof asked !== 'string') return asked
  throw new ToolError('invalid_argument', `address: ${asked}`, { argument: 'address' })
}

type Ctx = ToolContext<true>
type ListRow = Static<typeof ListRow>

interface FoundLists {
  rows: ListRow[]
  analysed: number
  /**
   * Number of lists that contain none of the requested addresses but have domain names, which may resolve to them; 0 if
   * the question is about a domain name.
   */
  named: number
  counts: Record<Exclude<Hold, 'none'>, number>
}

/**
 * Finds the IP lists that contain the requested addresses or domain name. They are sorted by how much they contain
 * (`whole`, `part`, `uncertain`, `excluded`), and within each of these, the narrowest list comes first.
 */
async function findLists({ pce, signal }: Ctx, policyVersion: PolicyVersionSelector, asked: AskedAddresses | string) {
  const found: { row: ListRow; size: bigint }[] = []
  const counts = { whole: 0, part: 0, uncertain: 0, excluded: 0 }
  let [analysed, named] = [0, 0]
  const take = (list: IpList) => {
    analysed += 1
    const one = typeof asked === 'string' ? matchName(list, asked) : matchList(list, asked)
    if (one !== undefined) {
      found.push(one)
      counts[one.row.holds as keyof typeof counts] += 1
    } else if ((list.fqdns ?? []).length > 0) named += 1
  }
  const query = { api: pce.ipLists, policyVersion, params: {}, signal }
  await scanWhole(query, {
    onBegin() {
      found.length = analysed = named = 0
      Object.assign(counts, { whole: 0, part: 0, uncertain: 0, excluded: 0 })
    },
    onItems: (items) => items.forEach(take),
  })
  const rankOf = ({ holds }: ListRow) => (HOLDS as readonly string[]).indexOf(holds)
  found.sort((a, b) => rankOf(a.row) - rankOf(b.row) || (a.size < b.size ? -1 : Number(a.size > b.size)))
  return { rows: found.map(({ row }) => row), analysed, named: typeof asked === 'string' ? 0 : named, counts }
}

function matchList(list: IpList, asked: AskedAddresses): { row: ListRow; size: bigint } | undefined {
  const match = matchAddresses(list, asked)
  if (match.hold === 'none') return undefined
  const write = (intervals: AddressMatch['held']) =>
    intervals.slice(0, MOST_NAMED).map((one) => writeInterval(asked.family, one))
  const isPart = match.hold === 'part' || match.hold === 'uncertain'
  const row: ListRow = {
    name: list.name,
    href: list.href,
    holds: match.hold,
    ranges: match.ranges.slice(0, MOST_NAMED).map(writeRange),
    ...(isPart && { held: write(match.held), held_addresses: String(sizeOf(match.held)) }),
    ...(match.taken.length > 0 && { excluded: write(match.taken) }),
    ...(match.ranges.length > MOST_NAMED && { entries_total: match.ranges.length }),
    ...(list.update_type != null && { update_type: list.update_type }),
    ...noteOf(list, match),
  }
  return { row, size: match.size }
}

function noteOf(list: IpList, { hold, taken, held }: AddressMatch): { note?: string } {
  const { fqdns } = list
  const isCut = held.length > MOST_NAMED || taken.length > MOST_NAMED
  const notes = [
    isEmpty(list) ? 'It gives neither ranges nor domain names.' : '',
    hold === 'uncertain' && !isEmpty(list)
      ? 'It has ranges that cannot be read, which may add to this or take away from it.'
      : '',
    taken.length > 0 && (fqdns ?? []).length > 0
      ? 'It has domain names too, and whether one outweighs an exclusion is not documented.'
      : '',
    hold === 'part' && (fqdns ?? []).length > 0 ? 'Its domain names may resolve to more of it.' : '',
    isCut ? `Of held and excluded the first ${MOST_NAMED} are shown.` : '',
  ]
  const note = notes.filter(Boolean).join(' ')
  return note === '' ? {} : { note }
}

/**
 * Compares a domain name, as a string, with the domain names of an IP list. `*` in the list stands for any characters,
 * and case is ignored.
 */
function matchName(list: IpList, fqdn: string): { row: ListRow; size: bigint } | undefined {
  const names = (list.fqdns ?? []).flatMap((one) => one.fqdn ?? []).filter((pattern) => compileName(pattern)(fqdn))
  if (names.length === 0) return undefined
  const row = {
    name: list.name,
    href: list.href,
    holds: 'whole',
    names: names.slice(0, MOST_NAMED),
    ...(names.length > MOST_NAMED && { entries_total: names.length }),
    ...(list.update_type != null && { update_type: list.update_type }),
  }
  return { row, size: BigInt(list.fqdns?.length ?? 0) }
}

interface FoundWorkloads {
  rows: WorkloadRow[]
  total: number
  unmanaged: number
  /** Number of Kubernetes workloads whose addresses the PCE does not report. */
  untold: number
  /** The reason why Kubernetes workloads could not be read; null if they were read. */
  unread: string | null
}

/**
 * Finds the workloads with an interface that has one of the requested addresses. Returns at most `most` workloads, but
 * counts all.
 */
async function findWorkloads(ctx: Ctx, asked: AskedAddresses, most: number): Promise<FoundWorkloads> {
  const { pce, signal } = ctx
  const kept: { workload: Workload; addresses: string[] }[] = []
  let [total, unmanaged, untold] = [0, 0, 0]
  const take = (workload: Workload) => {
    const addresses = addressesWithin(workload, asked)
    if (addresses.length === 0 || workload.deleted === true) return
    total += 1
    if (!isManaged(workload)) unmanaged += 1
    if (kept.length < most) kept.push({ workload, addresses })
  }
  // The PCE compares addresses as strings and does not match networks (P8). An IPv6 address has several spellings, so
  // only a single IPv4 address is passed to the PCE.
  const isOne = asked.family === 'ipv4' && asked.from === asked.to
  const params = { include: 'labels', ...(isOne && { ip_address: writeInterval('ipv4', asked) }) }
  await scanWhole<Workload>(
    { api: pce.workloads, params, signal },
    {
      onBegin() {
        kept.length = total = unmanaged = 0
      },
      onItems(items) {
        items.forEach(take)
      },
    },
  )
  const { unread } = await readKubernetesWorkloads({ pce, signal }, {}, (workload) => {
    if (workload.interfaces == null) untold += 1
    take(workload)
    return undefined
  })
  const expand = await labelExpander(
    pce,
    kept.flatMap(({ workload }) => workload.labels ?? []),
    ctx,
  )
  return { rows: kept.map((one) => showWorkload(one, expand)), total, unmanaged, untold, unread }
}

function addressesWithin({ interfaces }: Workload, asked: AskedAddresses): string[] {
  return (interfaces ?? []).flatMap(({ address }) => {
    const own = address == null ? '' : readAsked(address)
    const isWithin =
      typeof own !== 'string' && own.family === asked.family && asked.from <= own.from && own.from <= asked.to
    return isWithin ? [address as string] : []
  })
}

function showWorkload(
  { workload, addresses }: { workload: Workload; addresses: string[] },
  expand: (label: LabelRef) => LabelRef,
): WorkloadRow {
  const { name, hostname, href, labels } = workload
  return {
    name: name ?? hostname ?? null,
    ...(hostname != null && hostname !== name && name != null && { hostname }),
    href,
    managed: isManaged(workload),
    addresses: [...new Set(addresses)].slice(0, MOST_NAMED),
    labels: (labels ?? []).map((label) => showLabelOf(expand(label))),
  }
}

function describe(
  what: string,
  version: PolicyVersionSelector,
  { analysed, counts, named }: FoundLists,
  workloads: FoundWorkloads | undefined,
): string {
  const of =
    typeof version === 'number' ? `policy version ${version}` : version === 'draft' ? 'the draft' : 'active policy'
  const held = [
    counts.whole > 0 ? `${workloads === undefined ? '' : 'wholly '}in ${counts.whole}` : '',
    counts.part > 0 ? `partly in ${counts.part}` : '',
    counts.uncertain > 0 ? `perhaps in ${counts.uncertain}` : '',
    counts.excluded > 0 ? `excluded from ${counts.excluded}` : '',
  ].filter(Boolean)
  const lists = `${what} is ${held.length === 0 ? 'in none' : held.join(', ')} of ${countOf(analysed, 'IP list')} of ${of}.`
  const names =
    named > 0
      ? ` ${countOf(named, 'other list')} ${named === 1 ? 'has' : 'have'} domain names, which may resolve to it.`
      : ''
  if (workloads === undefined) return `${lists} Names are compared as written; none is resolved.`
  const { total, unmanaged, untold, unread } = workloads
  const who =
    total === 0
      ? 'No workload has it at an interface.'
      : `${countOf(total, 'workload')} ${total === 1 ? 'has' : 'have'} it at an interface, ${unmanaged} of them unmanaged.`
  const unknown = [
    ...(untold > 0 ? [`The PCE does not tell the addresses of ${countOf(untold, 'Kubernetes workload')}.`] : []),
    ...tellUnread(unread),
  ]
  return [`${lists}${names} ${who}`, ...unknown].join(' ')
}
