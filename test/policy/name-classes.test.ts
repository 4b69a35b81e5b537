import fc from 'fast-check'
import t from 'tap'
import { compileName } from '../../domain/policy/compile-name.js'
import { classifyNames, divideNames } from '../../domain/policy/rule-boxes/name-classes.js'
import { finishAtOnce } from '../../domain/text/pace-work.js'
import type { IpList } from '../../schemas/pce/ip-list.js'

const listOf = (names: readonly string[]): IpList => ({ href: '', name: '', fqdns: names.map((fqdn) => ({ fqdn })) })
/** So small that few names are on several shelves, shared ones and kept ones. */
const SIZES = { shared: 3, own: 4 }

t.test('a mask holds another one where every name and pattern of that list is matched', async (t) => {
  const name = fc
    .array(fc.constantFrom('a', 'B', '.', '*'), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join(''))
  const namesOfLists = fc.array(fc.array(name, { maxLength: 7 }), { minLength: 2, maxLength: 5 })
  fc.assert(
    fc.property(namesOfLists, (names) => {
      const lists = names.map(listOf)
      const all = [...new Set(names.flat())]
      const contents = names.map(
        (own) => new Set(all.filter((one) => own.some((pattern) => compileName(pattern)(one)))),
      )
      const relations = (isHeld: (a: number, b: number) => boolean) =>
        fc.stringify(lists.map((_, a) => lists.map((__, b) => isHeld(a, b))))
      const isWithin = relations((a, b) => [...contents[a]!].every((one) => contents[b]!.has(one)))
      const isApart = relations((a, b) => [...contents[a]!].every((one) => !contents[b]!.has(one)))
      // Later rounds use what earlier ones kept, with other lists around.
      return [lists, lists.toReversed(), lists].every((order) => {
        const { masks, isComplete } = finishAtOnce(divideNames(order, SIZES))
        const maskAt = (at: number) => masks.get(lists[at]!)!
        return (
          isComplete &&
          relations((a, b) => (maskAt(a) & ~maskAt(b)) === 0n) === isWithin &&
          relations((a, b) => (maskAt(a) & maskAt(b)) === 0n) === isApart
        )
      })
    }),
  )
  t.pass()
})

t.test('names of lists that overlap in too many ways are not compared, and that is said', async (t) => {
  const overlapping = (at: number) => listOf(Array.from({ length: 2500 }, (_, n) => `*${at}*a${n}*`))
  const { masks, isComplete } = finishAtOnce(classifyNames([overlapping(1), overlapping(2)]))
  t.same([masks.size, isComplete], [2, false])
})
