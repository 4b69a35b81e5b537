import t from 'tap'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'

t.test('an unknown profile is refused with the names of the known ones', async (t) => {
  await t.rejects(startPce(t, { reality: 'core-9' as 'lab' }), {
    message: 'reality must be one of lab, core-25.2, not "core-9"',
  })
})

t.test('events tell logins and lists as recorded ones do', async (t) => {
  for (const reality of ['lab', 'core-25.2'] as const) {
    const { call, org } = await startPce(t, { reality, password: 'p' })
    const newest = async () => (await org('GET', '/events?max_results=1')).body[0]
    const logIn = async (name: string) => {
      await call('POST', '/login_users/authenticate', undefined, { authorization: `Basic ${btoa(`${name}:p`)}` })
      const { created_by, resource_changes, notifications } = await newest()
      return [created_by, resource_changes.length, notifications.map(({ info }: { info: object }) => info)]
    }
    const user = { href: '/users/1', username: 'admin@example.com' }
    const isLab = reality === 'lab'
    t.same(await logIn(user.username), isLab ? [{ user }, 1, []] : [{ system: {} }, 0, [{ user }]], reality)
    const supplied = { associated_user: { supplied_username: 'mallory' } }
    t.same(await logIn('mallory'), [{ system: {} }, 0, isLab ? [] : [supplied]], reality)

    const [old, next] = ['192.0.2.1', '192.0.2.2'].map((from_ip) => ({ from_ip, exclusion: false }))
    const { body: made } = await org('POST', '/sec_policy/draft/ip_lists', { name: 'x', ip_ranges: [old] })
    partial(t, (await newest()).resource_changes[0].changes, {
      ip_ranges: isLab ? { before: null, after: [old] } : { created: [old] },
      name: { before: null, after: 'x' },
    })
    await org('PUT', made.href, { ip_ranges: [next] })
    t.same(
      (await newest()).resource_changes[0].changes.ip_ranges,
      isLab ? { before: [old], after: [next] } : { created: [next], deleted: [old] },
      reality,
    )
  }
})
