/** The ranking of the largest estate that the server promises to stand. */
import t from 'tap'
import { describeGraph, measureGraph } from '../../scripts/bench/measure-graph.js'

t.test('5,000 applications and 50,000 edges are ranked in at most 3 s of processor time', async (t) => {
  const figures = await measureGraph(5000, 50_000)
  t.ok(figures.cpuMs <= 3000, describeGraph(figures).join('\n'))
})
