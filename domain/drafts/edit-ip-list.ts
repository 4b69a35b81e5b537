import { ToolError } from '../../schemas/errors.js'
import type { FqdnReference, IpRangeInput } from '../../schemas/ip-list-shapes.js'
import type { IpList, IpRange } from '../../schemas/pce/ip-list.js'
import { readRange, type Family, type Range } from '../policy/addresses.js'
import type { Interval } from '../policy/classify-numbers.js'
import { holdAddresses, type HeldAddresses, writeInterval, writeRange } from '../policy/hold-addresses.js'
import { sizeOf, subtractIntervals } from '../policy/intervals.js'
import { countOf } from '../text/describe-numbers.js'
import { nearNames } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import { planFqdns, planRanges } from './plan-ip-list.js'

/** A range as callers write it: a string (`10.0.0.0/8`, `10.0.0.1-10.0.0.9`) or an object. */
export type RangeReference = string | object

/** Entries to add to a list and to remove from it, as the caller gave them. */
export interface EditArguments {
  add_ranges?: readonly RangeReference[]
  remove_ranges?: readonly RangeReference[]
  add_fqdns?: readonly FqdnReference[]
  remove_fqdns?: readonly string[]
}

type Fqdn = NonNullable<IpList['fqdns']>[number]

/** The requested edit after its entries have been checked. */
export interface ListEdit {
  add: { ranges: IpRangeInput[]; fqdns: Fqdn[] }
  remove: { ranges: IpRangeInput[]; fqdns: Fqdn[] }
}

/** The effect of an edit on a list. */
export interface PlannedEdit {
  /** The fields of the list to send; unchanged fields are left out. */
  body: { ip_ranges?: IpRange[]; fqdns?: Fqdn[] }
  /** The added and removed entries as strings; exclusions start with `!`. */
  added: string[]
  removed: string[]
  /** The entries that the caller wants to add but that are already in the list. */
  alreadyThere: string[]
  /** The addresses that the list gains and loses, computed from the ranges that can be parsed. */
  gained: Moved
  lost: Moved
  /** Numbers of ranges and of domain names that the list has after the edit. */
  ranges: number
  fqdns: number
  warnings: string[]
}

export interface Moved {
  /** The gained or lost addresses, as networks or in the form `first-last`. */
  ranges: string[]
  addresses: bigint
}

const RANGE_FIELDS = ['from_ip', 'to_ip', 'description', 'exclusion']
const FAMILIES: readonly Family[] = ['ipv4', 'ipv6']
/** Maximum number of entries named in an error or a warning. */
const MOST_NAMED = 5

/**
 * Reads the entries to add and remove. Throws no_update_fields if there are none, and invalid_argument if an entry is
 * malformed or is both added and removed.
 */
export function readEdit(args: EditArguments): ListEdit {
  const { add_ranges: addRanges, remove_ranges: removeRanges, add_fqdns: addFqdns, remove_fqdns: removeFqdns } = args
  const fields = ['add_ranges', 'remove_ranges', 'add_fqdns', 'remove_fqdns']
  if ([addRanges, removeRanges, addFqdns, removeFqdns].every((list) => (list ?? []).length === 0))
    throw new ToolError('no_update_fields', `No change was given. Give one of ${fields.join(', ')}.`, { fields })
  const edit = {
    add: { ranges: readRanges(addRanges, 'add_ranges'), fqdns: planFqdns(undefined, addFqdns, 'add_fqdns') ?? [] },
    remove: {
      ranges: readRanges(removeRanges, 'remove_ranges'),
      fqdns: planFqdns(undefined, removeFqdns, 'remove_fqdns') ?? [],
    },
  }
  const added = new Set([...edit.add.ranges.map(idOfRange), ...edit.add.fqdns.map(idOfName)])
  const both = [
    ...edit.remove.ranges.filter((range) => added.has(idOfRange(range))).map(writeRange),
    ...edit.remove.fqdns.filter((name) => added.has(idOfName(name))).map(({ fqdn }) => fqdn),
  ]
  if (both.length === 0) return edit
  throw new ToolError(
    'invalid_argument',
    `Both added and removed: ${both.slice(0, MOST_NAMED).map(quote).join(', ')}.`,
    { both },
  )
}

function readRanges(given: readonly RangeReference[] = [], argument: string): IpRangeInput[] {
  return planRanges(
    given.map((entry, at) => readEntry(entry, `${argument}[${at}]`)),
    argument,
  )
}

function readEntry(entry: RangeReference, argument: string): IpRangeInput {
  if (typeof entry === 'string') {
    const [from = '', ...rest] = entry.split('-')
    return rest.length === 0 ? { from_ip: from } : { from_ip: from, to_ip: rest.join('-') }
  }
  const { from_ip: from, to_ip: to, description, exclusion } = entry as Record<string, unknown>
  const isText = (value: unknown) => value === undefined || typeof value === 'string'
  const isWell =
    typeof from === 'string' &&
    isText(to) &&
    isText(description) &&
    (exclusion === undefined || typeof exclusion === 'boolean') &&
    Object.keys(entry).every((field) => RANGE_FIELDS.includes(field))
  if (isWell) return entry as IpRangeInput
  const text = `${argument}: a range is text or {from_ip, to_ip?, exclusion?, description?}.`
  throw new ToolError('invalid_argument', text, { argument })
}

/**
 * Returns a string that identifies a range by its addresses, in whatever notation. An exclusion of the same addresses
 * has a different string.
 */
function idOfRange(range: IpRange): string {
  const read = readRange(range)
  const written = read === null ? [range.from_ip, range.to_ip ?? ''] : [read.family, read.from, read.to]
  return [...written, range.exclusion === true].join(' ')
}

const idOfName = ({ fqdn }: Pick<Fqdn, 'fqdn'>) => fqdn.toLowerCase()

/**
 * Plans an edit of the current list. Throws not_found, with similar entries, if an entry to remove is not in the list,
 * and invalid_argument if the list would become empty.
 */
export function planEdit(current: IpList, { add, remove }: ListEdit): PlannedEdit {
  const ranges = editEntries(current.ip_ranges ?? [], add.ranges, remove.ranges, idOfRange)
  const fqdns = editEntries(current.fqdns ?? [], add.fqdns, remove.fqdns, idOfName)
  refuseUnknown(current, ranges.unknown, fqdns.unknown)
  if (ranges.after.length + fqdns.after.length === 0) {
    throw new ToolError(
      'invalid_argument',
      `This would leave nothing in the IP list ${quote(current.name)}, which needs at least one range or domain name.`,
      { argument: remove.ranges.length > 0 ? 'remove_ranges' : 'remove_fqdns' },
    )
  }
  const after = ranges.after.map(toWire)
  const moved = FAMILIES.map((family): MovedFamily => {
    const [was, is] = [holdAddresses(current, family), holdAddresses({ ip_ranges: after }, family)]
    return { family, ...is, gained: subtractIntervals(is.held, was.held), lost: subtractIntervals(was.held, is.held) }
  })
  const collect = (which: 'gained' | 'lost'): Moved => ({
    ranges: moved.flatMap((one) => one[which].map((interval) => writeInterval(one.family, interval))),
    addresses: moved.reduce((sum, one) => sum + sizeOf(one[which]), 0n),
  })
  return {
    body: {
      ...(ranges.isChanged && { ip_ranges: after }),
      ...(fqdns.isChanged && { fqdns: fqdns.after.map(toWire) }),
    },
    added: [...ranges.added.map(writeRange), ...fqdns.added.map(({ fqdn }) => fqdn)],
    removed: [...ranges.removed.map(writeRange), ...fqdns.removed.map(({ fqdn }) => fqdn)],
    alreadyThere: [...ranges.already.map(writeRange), ...fqdns.already.map(({ fqdn }) => fqdn)],
    gained: collect('gained'),
    lost: collect('lost'),
    ranges: ranges.after.length,
    fqdns: fqdns.after.length,
    warnings: warnOfIdle(ranges.added, moved),
  }
}

/** Prepares an entry for sending: the PCE returns null for absent fields but does not accept null. */
const toWire = <T extends object>(entry: T): T =>
  Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== null && value !== undefined)) as T

function editEntries<T>(before: readonly T[], add: readonly T[], remove: readonly T[], idOf: (entry: T) => string) {
  const there = new Set(before.map(idOf))
  const gone = new Set(remove.map(idOf))
  const known = new Set(there)
  const [added, already]: [T[], T[]] = [[], []]
  for (const entry of add) {
    ;(known.has(idOf(entry)) ? already : added).push(entry)
    known.add(idOf(entry))
  }
  const removed = before.filter((entry) => gone.has(idOf(entry)))
  return {
    after: [...before.filter((entry) => !gone.has(idOf(entry))), ...added],
    added,
    already,
    removed,
    unknown: remove.filter((entry) => !there.has(idOf(entry))),
    isChanged: added.length > 0 || removed.length > 0,
  }
}

function refuseUnknown(current: IpList, ranges: readonly IpRange[], names: readonly Fqdn[]): void {
  const unknown = [...ranges.map(writeRange), ...names.map(({ fqdn }) => fqdn)]
  if (unknown.length === 0) return
  // Similar entries are searched for only the first few unknown entries, because each search scans the whole list.
  const explained = ranges.slice(0, MOST_NAMED)
  const known = (current.fqdns ?? []).map(({ fqdn }) => fqdn)
  const near = [
    ...explained.flatMap((range) => nearRanges(current, range)),
    ...names.slice(0, MOST_NAMED).flatMap(({ fqdn }) => nearNames(fqdn, known)),
  ]
  const hint = explained.map((range) => adviseOn(current, range)).find((advice) => advice !== undefined)
  throw new ToolError(
    'not_found',
    `The IP list ${quote(current.name)} does not have ${unknown.slice(0, MOST_NAMED).map(quote).join(', ')}${unknown.length > MOST_NAMED ? ` and ${unknown.length - MOST_NAMED} more` : ''}.`,
    { href: current.href, not_in_list: unknown, near_entries: [...new Set(near)].slice(0, 2 * MOST_NAMED) },
    hint === undefined ? {} : { hint },
  )
}

/** Returns the entries of the list that overlap a range or look similar to it. */
function nearRanges({ ip_ranges: ranges }: IpList, wanted: IpRange): string[] {
  const read = readRange(wanted)
  const sharing = (ranges ?? []).filter((range) => {
    const other = readRange(range)
    return read !== null && other !== null && shares(read, other)
  })
  const written = (ranges ?? []).map(writeRange)
  return [...sharing.map(writeRange), ...nearNames(writeRange(wanted), written, MOST_NAMED)]
}

const shares = (a: Range, b: Range) => a.family === b.family && a.from <= b.to && b.from <= a.to

/**
 * Suggests what a caller probably meant by a range that is not in the list: the range is part of a wider one, or it is
 * in the list with the opposite exclusion flag.
 */
function adviseOn({ ip_ranges: ranges }: IpList, wanted: IpRange): string | undefined {
  const opposite = idOfRange({ ...wanted, exclusion: wanted.exclusion !== true })
  if ((ranges ?? []).some((range) => idOfRange(range) === opposite)) {
    return wanted.exclusion === true
      ? 'It is there as a range, not as an exclusion: leave exclusion out.'
      : 'It is there as an exclusion: give {from_ip, to_ip, exclusion: true} to remove that.'
  }
  const read = readRange(wanted)
  const wider = (ranges ?? []).find((range) => {
    const other = readRange(range)
    const isWider = read !== null && other?.family === read.family && other.from <= read.from && read.to <= other.to
    return isWider && !other.exclusion
  })
  return wider === undefined || wanted.exclusion === true
    ? undefined
    : `It is part of ${writeRange(wider)}: add it with exclusion: true to take it out, or replace the wider range.`
}

/**
 * Explains each added range that changes nothing. `moved` says for each address family what the edit does: `held` are
 * the addresses in the list after the edit, `taken` those that the list's exclusions remove, and `gained` those that
 * are in the list only because of the edit.
 */
function warnOfIdle(added: readonly IpRange[], moved: readonly MovedFamily[]): string[] {
  const idle = added.flatMap((range) => {
    const read = readRange(range)
    const own = moved.find(({ family }) => family === read?.family)
    if (read === null || own === undefined) return []
    const meets = (intervals: readonly Interval[]) =>
      intervals.some(({ from, to }) => from <= read.to && read.from <= to)
    const has = (intervals: readonly Interval[]) => intervals.some(({ from, to }) => from <= read.from && read.to <= to)
    const text = writeRange(range)
    if (read.exclusion) return meets(own.taken) ? [] : [`${text} takes nothing out: no range has any of it.`]
    if (meets(own.gained)) return []
    return [
      has(own.held) ? `${text} adds nothing: other ranges have it.` : `${text} adds nothing: exclusions take it out.`,
    ]
  })
  const more = idle.length - MOST_NAMED
  return more > 0 ? [...idle.slice(0, MOST_NAMED), `And ${countOf(more, 'more added range')} like these.`] : idle
}

interface MovedFamily extends HeldAddresses {
  family: Family
  gained: Interval[]
  lost: Interval[]
}

/** Returns true if two versions of a list have the same entries with the same descriptions, in any order. */
export function hasSameEntries(a: IpList, b: IpList): boolean {
  const textOf = ({ ip_ranges: ranges, fqdns }: IpList) =>
    JSON.stringify([
      (ranges ?? []).map((range) => `${idOfRange(range)} ${range.description ?? ''}`).sort(),
      (fqdns ?? []).map(({ fqdn, description }) => `${fqdn} ${description ?? ''}`).sort(),
    ])
  return textOf(a) === textOf(b)
}
