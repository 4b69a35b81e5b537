import type { IpList } from '../../../schemas/pce/ip-list.js'
import type { Steps } from '../../text/pace-work.js'
import { compileName } from '../compile-name.js'
import { createMask } from '../build-mask.js'
import { keepClasses } from './keep-classes.js'

/**
 * A division of domain names and patterns into classes. Two names are in the same class if they are on exactly the same
 * IP lists.
 */
export interface NameClasses {
  /** For each list, a bit mask of the classes that the list contains. */
  masks: ReadonlyMap<IpList, bigint>
  /** Number of classes. */
  count: number
  /**
   * False if it would have taken too long to determine which names the patterns match. If the mask of list A contains
   * the mask of list B, then A certainly contains B. If it does not, A may contain B nevertheless.
   */
  isComplete: boolean
}

/**
 * The sizes that determine which names are sorted together. They affect the speed of the search, but not its result.
 */
export interface ShelfSizes {
  /** Number of names from short lists that are sorted together. Sorting them takes a few milliseconds. */
  shared: number
  /** A list with at least this many names is sorted on its own, and the sorted copy is cached. */
  own: number
}

const SHELF_SIZES: ShelfSizes = { shared: 4096, own: 500 }
/** Number of names that are divided into classes in one step of work. */
const NAMES_PER_STEP = 2000
/** Maximum number of comparisons of a name with a pattern. This many take about a second. */
const MOST_COMPARED = 5_000_000

/**
 * Divides the domain names on IP lists into classes. Lists can then be compared in time and memory that depend on their
 * differences, not on their length. A pattern contains every pattern that it matches: *.example.com contains
 * *.eu.example.com.
 */
export const classifyNames = keepClasses(divideNames)

/**
 * Divides names as `classifyNames` does, but without its cache.
 * @param sizes set only by tests, to check that different sizes give the same result.
 */
export function* divideNames(lists: readonly IpList[], sizes = SHELF_SIZES): Steps<NameClasses> {
  // Names are in one class if they occur in the same lists. With a single list all are, so nothing is compared.
  const contained = lists.length < 2 ? [] : yield* findContained(lists, sizes)
  // A class is represented by the set of those IP lists, among the lists read so far, that contain its names. The set
  // is a linked chain from the last list to the first.
  const classOf = new Map<string, Class>()
  for (const [at, list] of lists.entries()) {
    yield
    const members = new Set(namesIn(list))
    for (const names of contained?.[at] ?? []) for (const name of names) members.add(name)
    const refined = new Map<Class | undefined, Class>()
    let read = 0
    for (const name of members) {
      if (read++ % NAMES_PER_STEP === 0) yield
      const before = classOf.get(name)
      const now = refined.get(before) ?? { list: at, before }
      refined.set(before, now)
      classOf.set(name, now)
    }
  }
  const classes = [...new Set(classOf.values())]
  const masks = lists.map(createMask)
  let marked = 0
  for (const [bit, own] of classes.entries())
    for (let one: Class | undefined = own; one !== undefined; one = one.before) {
      if (marked++ % NAMES_PER_STEP === 0) yield
      masks[one.list]!.set(bit)
    }
  const read = new Map<IpList, bigint>()
  for (const [at, list] of lists.entries()) {
    read.set(list, masks[at]!.read())
    yield
  }
  return { masks: read, count: classes.length, isComplete: contained !== undefined }
}

interface Class {
  list: number
  before: Class | undefined
}

const namesOfList = new WeakMap<IpList, ReadonlySet<string>>()

/** Returns the names and patterns of a list in lower case. The result is cached for each list. */
function namesIn(list: IpList): ReadonlySet<string> {
  const known = namesOfList.get(list) ?? new Set((list.fqdns ?? []).map(({ fqdn }) => fqdn.toLowerCase()))
  namesOfList.set(list, known)
  return known
}

/**
 * Finds, for each list, all names and patterns that its patterns match. The result of a list has one array for each
 * shelf (sorted set of names). Returns undefined if the search would take too long.
 */
function* findContained(lists: readonly IpList[], sizes: ShelfSizes): Steps<(readonly string[])[][] | undefined> {
  const wide: (readonly string[])[] = []
  for (const list of lists) {
    wide.push(patternsIn(list))
    yield
  }
  if (wide.every((own) => own.length === 0)) return []
  const shelves = yield* createShelves(lists, sizes)
  const contained: (readonly string[])[][] = []
  let compared = 0
  for (const [at, list] of lists.entries()) {
    const own: (readonly string[])[] = []
    for (const shelf of wide[at]!.length === 0 ? [] : shelves) {
      const known = shelf.contained.get(list) ?? (yield* matchAll(wide[at]!, shelf))
      shelf.contained.set(list, known)
      compared += known.compared
      if (compared > MOST_COMPARED) return undefined
      own.push(known.names)
    }
    contained.push(own)
  }
  return contained
}

const patternsOfList = new WeakMap<IpList, readonly string[]>()

/** Returns the patterns of a list in lower case. The result is cached for each list. */
function patternsIn(list: IpList): readonly string[] {
  const known = patternsOfList.get(list) ?? [...namesIn(list)].filter((name) => name.includes('*'))
  patternsOfList.set(list, known)
  return known
}

/** The names that patterns match, and the number of comparisons that were made to find them. */
interface Matched {
  names: readonly string[]
  compared: number
}

function* matchAll(patterns: readonly string[], shelf: Shelf): Steps<Matched> {
  const names: string[] = []
  let compared = 0
  for (const pattern of patterns) {
    compared += 1
    if (!shelf.hasTailOf(pattern)) continue
    yield
    const near = shelf.near(pattern)
    compared += near.length
    if (compared > MOST_COMPARED) break
    const matches = compileName(pattern)
    for (const name of near) if (matches(name)) names.push(name)
  }
  return { names, compared }
}

const shelfOfList = new WeakMap<IpList, Shelf>()

/**
 * Distributes the names of all lists over shelves, that is, sorted sets of names. A long list has its own shelf, which
 * is cached; short lists share shelves.
 */
function* createShelves(lists: readonly IpList[], sizes: ShelfSizes): Steps<Shelf[]> {
  const shelves: Shelf[] = []
  let short = new Set<string>()
  for (const list of lists) {
    yield
    const names = namesIn(list)
    if (names.size >= sizes.own) {
      const own = shelfOfList.get(list) ?? createShelf([...names])
      shelfOfList.set(list, own)
      shelves.push(own)
      continue
    }
    for (const name of names) short.add(name)
    if (short.size < sizes.shared) continue
    shelves.push(createShelf([...short]))
    short = new Set()
  }
  return short.size === 0 ? shelves : [...shelves, createShelf([...short])]
}

/**
 * Number of characters at the end of a pattern that are compared first. A shelf without a name with this ending is
 * skipped. The number affects only the speed.
 */
const TAIL = 16

/** A set of names, sorted so that the names that a pattern may match are found quickly. */
interface Shelf {
  /**
   * Returns false if no name on the shelf ends like the pattern, which is so for most shelves. They are then skipped.
   */
  hasTailOf(pattern: string): boolean
  /**
   * Returns the candidates for a pattern: all names that begin like it, or all names that end like it, whichever are
   * fewer.
   */
  near(pattern: string): readonly string[]
  /** For each list, the names on this shelf that the list's patterns match. */
  contained: WeakMap<IpList, Matched>
}

function createShelf(names: readonly string[]): Shelf {
  const byStart = names.toSorted()
  const reversed = names.map((name) => [reverse(name), name] as const).sort(([a], [b]) => (a < b ? -1 : 1))
  const reversedKeys = reversed.map(([key]) => key)
  const byEnd = reversed.map(([, name]) => name)
  const tails = new Map<string, boolean>()
  return {
    contained: new WeakMap(),
    hasTailOf(pattern) {
      const tail = pattern.slice(Math.max(pattern.lastIndexOf('*') + 1, pattern.length - TAIL))
      const known = tails.get(tail)
      if (known !== undefined) return known
      const [from, to] = rangeOf(reversedKeys, reverse(tail))
      tails.set(tail, from < to)
      return from < to
    },
    near(pattern) {
      const ending = rangeOf(reversedKeys, reverse(pattern.slice(pattern.lastIndexOf('*') + 1)))
      if (ending[0] === ending[1]) return []
      const beginning = rangeOf(byStart, pattern.slice(0, pattern.indexOf('*')))
      const isFewer = beginning[1] - beginning[0] < ending[1] - ending[0]
      return isFewer ? byStart.slice(...beginning) : byEnd.slice(...ending)
    },
  }
}

/**
 * Reverses the code units of a string. The result may be malformed Unicode, but it is compared only with other reversed
 * strings.
 */
const reverse = (text: string) => text.split('').reverse().join('')

/** Returns the range of indexes at which the strings of a sorted list begin with `start`. */
function rangeOf(sorted: readonly string[], start: string): [from: number, to: number] {
  const from = firstAt(sorted, 0, (text) => text < start)
  return [from, firstAt(sorted, from, (text) => text.startsWith(start))]
}

/**
 * Searches sorted strings from index `from` on, and returns the index of the first string for which `isBefore` is
 * false.
 */
function firstAt(sorted: readonly string[], from: number, isBefore: (text: string) => boolean): number {
  let [low, high] = [from, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(sorted[middle] as string)) low = middle + 1
    else high = middle
  }
  return low
}
