import type { IpList } from '../../../schemas/pce/ip-list.js'
import { ANY_IP_LIST_NAMES } from '../../../schemas/pce/words.js'
import { LAST, readRange, type Family, type Range } from '../addresses.js'
import type { Box } from '../boxes.js'
import { type NumberClasses, classifyNumbers } from '../classify-numbers.js'
import type { PolicyContents } from '../load-contents.js'
import type { RuleInForce } from '../rule-in-force.js'
import { type Steps, finishAtOnce } from '../../text/pace-work.js'
import type { Bit } from './bits.js'
import { textOf } from './comparable-text.js'
import { keepClasses } from './keep-classes.js'
import { classifyNames } from './name-classes.js'

/** The dimensions of addresses and domain names in a space of rules. */
export interface Addresses {
  /** The mask with the bits of all addresses. */
  all: bigint
  /** Total number of values of these dimensions. */
  values: number
  /** False if it would have taken too long to determine which domain names the patterns contain. */
  isComplete: boolean
  /**
   * Returns true if a mask contains more than half of all IPv4 addresses, or more than an eighth of all IPv6 addresses
   * (D92).
   */
  isMost: (mask: bigint) => boolean
  /**
   * Returns boxes for the ends whose address or domain name is on at least one of the given IP lists. Each such end is
   * in at least one of the boxes.
   */
  boxesOf(named: readonly { href: string }[], contents: PolicyContents): Box[]
}

/**
 * Creates the dimensions of addresses. The values of `ip` and `fqdn` are classes: addresses (or domain names) that are
 * on exactly the same IP lists form one class. The values of `list` are IP lists that cannot be read, each equal only
 * to itself.
 */
export function* createAddresses(rules: readonly RuleInForce[], bit: Bit): Steps<Addresses> {
  const lists = new Set<IpList>()
  for (const { rule, contents } of rules) {
    for (const { ip_list: list } of [...rule.providers, ...rule.consumers]) {
      const object = list && contents.listOf(list.href)
      if (object !== undefined) lists.add(object)
    }
  }
  const readable: IpList[] = []
  for (const list of lists) if ((yield* readRanges(list)).isReadable) readable.push(list)
  const index = new Map(readable.map((list, at) => [list, at]))
  const { four, six } = yield* classifyAddresses(readable)
  const shift = BigInt(four.sizes.length)
  const all = (1n << BigInt(four.sizes.length + six.sizes.length)) - 1n
  /** Returns the mask of the addresses that a list contains: its included ranges without its excluded ones. */
  const maskOf = (list: IpList): bigint => {
    if (isEverything(list)) return all
    const at = index.get(list) as number
    const [own, other] = [four, six].map(({ masks }) => (masks[at] ?? 0n) & ~(masks[readable.length + at] ?? 0n))
    return (own ?? 0n) | ((other ?? 0n) << shift)
  }
  const sizeOf = ({ sizes }: typeof four, mask: bigint) =>
    sizes.reduce((sum, size, at) => (((mask >> BigInt(at)) & 1n) === 1n ? sum + size : sum), 0n)
  const names = yield* classifyNames(readable)
  return {
    all,
    values: four.sizes.length + six.sizes.length + names.count,
    isComplete: names.isComplete,
    isMost: (mask) => 2n * sizeOf(four, mask) > LAST.ipv4 || 8n * sizeOf(six, mask >> shift) > LAST.ipv6,
    boxesOf(named, contents) {
      let mask = 0n
      let fqdns = 0n
      let unread = 0n
      for (const list of named) {
        const object = contents.listOf(list.href)
        if (object === undefined || !isReadable(object)) {
          unread |= bit('list', textOf(list, contents))
          continue
        }
        mask |= maskOf(object)
        // The lowest bit stands for an end without a domain name (NONE).
        fqdns |= (names.masks.get(object) ?? 0n) << 1n
      }
      if (mask === all) return [new Map()]
      return [
        ...(mask === 0n ? [] : [new Map([['ip', mask]])]),
        ...(fqdns === 0n ? [] : [new Map([['fqdn', fqdns]])]),
        ...(unread === 0n ? [] : [new Map([['list', unread]])]),
      ]
    },
  }
}

interface AddressClasses {
  four: NumberClasses
  six: NumberClasses
}

/** Divides all addresses into classes, so that the addresses of a class are on exactly the same IP lists. */
const classifyAddresses = keepClasses(function* (lists): Steps<AddressClasses> {
  const classify = (family: Family) => {
    const of = (part: keyof Parts) => lists.map((list) => finishAtOnce(readRanges(list))[family][part])
    return classifyNumbers({ from: 0n, to: LAST[family] }, [...of('included'), ...of('excluded')])
  }
  return { four: yield* classify('ipv4'), six: yield* classify('ipv6') }
})

/** Returns true if every range of a list can be read. */
export const isReadable = (list: IpList): boolean => finishAtOnce(readRanges(list)).isReadable

const isEverything = ({ name }: IpList) => name === ANY_IP_LIST_NAMES[0]

interface Parts {
  included: Range[]
  excluded: Range[]
}

/** The readable ranges of a list, by address family. */
interface Ranges extends Record<Family, Parts> {
  isReadable: boolean
}

/** Number of ranges that are read in one step of work. A step takes about a millisecond. */
const RANGES_PER_STEP = 100

const rangesOf = new WeakMap<IpList, Ranges>()

/** Reads the ranges of a list. The result is cached for each list. */
function* readRanges(list: IpList): Steps<Ranges> {
  const known = rangesOf.get(list)
  if (known !== undefined) return known
  const read: Ranges = {
    isReadable: true,
    ipv4: { included: [], excluded: [] },
    ipv6: { included: [], excluded: [] },
  }
  for (const [at, one] of (list.ip_ranges ?? []).entries()) {
    if (at % RANGES_PER_STEP === 0) yield
    const range = readRange(one)
    if (range === null) read.isReadable = false
    else read[range.family][range.exclusion ? 'excluded' : 'included'].push(range)
  }
  rangesOf.set(list, read)
  return read
}
