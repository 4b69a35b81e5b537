/** Domain name patterns of IP lists: the product and the simulator, each with its own way of matching, agree. */
import fc from 'fast-check'
import t from 'tap'
import { compileName } from '../../domain/policy/compile-name.js'
import { compileFqdn } from '../../pce-simulator/policy/match-addresses.js'

t.test('every pattern means the same to both', async (t) => {
  const text = (letters: string) => fc.array(fc.constantFrom(...letters), { maxLength: 8 }).map((some) => some.join(''))
  fc.assert(
    fc.property(
      text('aB.*+'),
      text('Ab.+'),
      (pattern, name) => compileName(pattern)(name) === compileFqdn(pattern)(name),
    ),
    { numRuns: 1000 },
  )
  t.same(
    ['*.example.com', 'WWW.*.com', 'www.example.com', 'www*www.example.com', '*', 'www.example.co'].filter((pattern) =>
      compileName(pattern)('www.Example.com'),
    ),
    ['*.example.com', 'WWW.*.com', 'www.example.com', '*'],
  )
})

t.test('many stars take no longer than few', async (t) => {
  const name = 'a'.repeat(253)
  const pattern = `${'*a'.repeat(60)}*b`
  t.same([compileName(pattern)(name), compileFqdn(pattern)(name)], [false, false])
})
