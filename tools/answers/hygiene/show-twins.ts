import { Type, type Static } from '@sinclair/typebox'
import { Nullable, StringEnum } from '../../../schemas/common.js'
import { chooseTwin } from '../../../domain/hygiene/choose-twin.js'
import type { TwinEvidence } from '../../../domain/hygiene/evidence-of-twins.js'
import { TWIN_KINDS, type Twins } from '../../../domain/hygiene/find-twins.js'
import type { Machine } from '../../../domain/hygiene/known-machines.js'

/** Maximum numbers that an answer lists for a group: of members, of addresses, and of shared values. */
export const MOST_MEMBERS = 6
const MOST_ADDRESSES = 3
const MOST_SHARED = 5

export const MEMBER_COLUMNS = [
  'href',
  'name',
  'managed',
  'ip_addresses',
  'labels',
  'rules_naming_it',
  'virtual_services',
  'rules_applying',
  'rules_undecided',
  'connections',
  'last_seen',
]

export const TwinsOut = Type.Object({
  kind: StringEnum(TWIN_KINDS, { description: 'shadow: one has a VEN, another stands for the same machine without' }),
  shared: Type.Array(Type.String(), { description: 'What they have in common' }),
  keep: Nullable(Type.String({ description: 'Href of the one to keep; null: none is chosen' })),
  why: Type.String({ description: 'The reason' }),
  first: Type.Optional(
    Type.Array(Type.String(), { description: 'What hangs on the others, and has to be moved before' }),
  ),
  members_total: Type.Optional(Type.Integer({ description: 'If not all are listed' })),
  members: Type.Array(Type.Array(Type.Unknown()), { description: 'In the order of member_columns; null: not known' }),
})

/** Returns the members of a group that an answer lists, for which evidence must therefore be read. */
export const listedOf = ({ members }: Twins): Machine[] => members.slice(0, MOST_MEMBERS)

/** Shows a group of workloads: what depends on each, which one to keep, and why. */
export function showTwins(twins: Twins, evidenceOf: (href: string) => TwinEvidence): Static<typeof TwinsOut> {
  const listed = listedOf(twins)
  const isCut = listed.length < twins.members.length
  const { keep, why, first } = isCut
    ? { keep: null, why: 'They are too many for a choice: an address or a name of so many is no machine.', first: [] }
    : chooseTwin(twins, evidenceOf)
  const shared = twins.shared.slice(0, MOST_SHARED).map(({ by, value }) => `${by} ${value}`)
  const more = twins.shared.length - shared.length
  return {
    kind: twins.kind,
    shared: [...shared, ...(more > 0 ? [`${more} more`] : [])],
    keep,
    why,
    ...(first.length > 0 && { first }),
    ...(isCut && { members_total: twins.members.length }),
    members: listed.map((machine) => rowOf(machine, evidenceOf(machine.href))),
  }
}

function rowOf(machine: Machine, { rules, named, bindings, traffic }: TwinEvidence): unknown[] {
  const { href, name, managed, addresses, labels } = machine
  const shown = addresses.slice(0, MOST_ADDRESSES)
  const more = addresses.length - shown.length
  return [
    href,
    name === href ? null : name,
    managed,
    `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
    labels.map(({ key, value, href: own }) => (key == null || value == null ? own : `${key}=${value}`)).join(', '),
    named,
    bindings,
    rules?.applying ?? null,
    rules?.undecided ?? null,
    traffic?.connections ?? null,
    traffic?.last == null ? null : new Date(traffic.last).toISOString(),
  ]
}
