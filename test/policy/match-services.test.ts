/** What services of rules cover, at the edges of their ranges. */
import t from 'tap'
import type { IngressService } from '../../schemas/pce/rule-set.js'
import { compileServices, coversServices } from '../../domain/policy/match-services.js'
import { unknown } from '../../domain/policy/three-valued.js'

const RANGE: IngressService = { port: 443, to_port: 445, proto: 6 }
const NOTHING = { serviceOf: () => undefined, isAllServices: () => false }

t.test('a range has its first and its last port, and none beside them', async (t) => {
  const matches = compileServices([RANGE, { port: 500, proto: 6 }], NOTHING)
  t.strictSame(
    [442, 443, 444, 445, 446, 499, 500, 501, null].map((port) => [port, matches(port, 6)]),
    [
      [442, 'no'],
      [443, 'yes'],
      [444, 'yes'],
      [445, 'yes'],
      [446, 'no'],
      [499, 'no'],
      [500, 'yes'],
      [501, 'no'],
      [null, unknown('port')],
    ],
  )
  t.strictSame([matches(443, 17), matches(443, null)], ['no', unknown('port')])
})

t.test('a service is covered where all of its ports are', async (t) => {
  const covered = (wide: IngressService[], narrow: IngressService) => coversServices(wide, [narrow], NOTHING)
  const [low, high]: IngressService[] = [
    { port: 440, to_port: 443, proto: 6 },
    { port: 444, to_port: 450, proto: 6 },
  ]
  t.strictSame(
    [
      covered([RANGE], RANGE),
      covered([RANGE], { port: 443, proto: 6 }),
      covered([RANGE], { port: 445, proto: 6 }),
      covered([RANGE], { port: 445, proto: 17 }),
      covered([RANGE], { port: 442, to_port: 445, proto: 6 }),
      covered([RANGE], { port: 443, to_port: 446, proto: 6 }),
      covered([low!, high!], RANGE),
      covered([high!, low!], RANGE),
      covered([low!, { ...high!, port: 445 }], RANGE),
    ],
    ['yes', 'yes', 'yes', 'no', 'no', 'no', 'yes', 'yes', 'no'],
  )
})
