/** Limits per minute: whom they remember (D12). */
import { fastify } from 'fastify'
import t from 'tap'
import rateLimits from '../../plugins/rate-limits/index.js'

t.test('a caller over the limit stays over it while thousands of others arrive', async (t) => {
  const app = fastify()
  t.teardown(() => app.close())
  await app.register(rateLimits)
  let caller = ''
  const limit = app.createLimit({ max: 2, keyOf: () => caller })
  const other = app.createLimit({ max: 1, keyOf: () => caller })
  const answers: Record<string, unknown> = {}
  app.get('/', async (request) => {
    const tryAs = (name: string) => {
      caller = name
      return limit(request).then(
        () => 'allowed',
        (error: { code: string }) => error.code,
      )
    }
    const crowd = async (name: string, count: number) => {
      for (let number = 0; number < count; number += 1) await tryAs(`${name}-${number}`)
    }
    answers.first = [await tryAs('ann'), await tryAs('ann'), await tryAs('ann')]
    await crowd('a', 9_999)
    answers.later = await tryAs('ann')
    answers.another = await other(request).then(() => 'allowed')
    await crowd('b', 10_000)
    answers.forgotten = await tryAs('ann')
    return {}
  })
  await app.inject('/')
  t.same(answers, {
    first: ['allowed', 'allowed', 'rate_limited'],
    later: 'rate_limited',
    another: 'allowed',
    // The memory is bounded anyway.
    forgotten: 'allowed',
  })
})
