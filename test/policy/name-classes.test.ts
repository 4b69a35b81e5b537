import fc from 'fast-check'
import t from 'tap'
import { compileName } from '../../domain/policy/compile-name.js'
import { classifyNames } from '../../domain/policy/rule-boxes/name-classes.js'
import { finishAtOnce } from '../../domain/text/pace-work.js'
import type { IpList } from '../../schemas/pce/ip-list.js'

const listOf = (names: readonly string[]): IpList => ({ href: '', name: '', fqdns: names.map((fqdn) => ({ fqdn })) })

t.test('a mask holds another one where every name and pattern of that list is matched', async (t) => {
  const name = fc
    .array(fc.constantFrom('a', 'B', '.', '*'), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.array(fc.array(name, { maxLength: 5 }), { minLength: 2, maxLength: 4 }), (names) => {
      const lists = names.map(listOf)
      const { masks, isComplete } = finishAtOnce(classifyNames(lists))
      const all = [...new Set(names.flat())]
      const contents = names.map(
        (own) => new Set(all.filter((one) => own.some((pattern) => compileName(pattern)(one)))),
      )
      const maskAt = (at: number) => masks.get(lists[at]!)!
      const relations = (isHeld: (a: number, b: number) => boolean) =>
        lists.map((_, a) => lists.map((__, b) => isHeld(a, b)))
      return (
        isComplete &&
        fc.stringify([
          relations((a, b) => (maskAt(a) & ~maskAt(b)) === 0n),
          relations((a, b) => (maskAt(a) & maskAt(b)) === 0n),
        ]) ===
          fc.stringify([
            relations((a, b) => [...contents[a]!].every((one) => contents[b]!.has(one))),
            relations((a, b) => [...contents[a]!].every((one) => !contents[b]!.has(one))),
          ])
      )
    }),
  )
  t.pass()
})

t.test('names of lists that overlap in too many ways are not compared, and that is said', async (t) => {
  const overlapping = (at: number) => listOf(Array.from({ length: 2500 }, (_, n) => `*${at}*a${n}*`))
  const { masks, isComplete } = finishAtOnce(classifyNames([overlapping(1), overlapping(2)]))
  t.same([masks.size, isComplete], [2, false])
})
