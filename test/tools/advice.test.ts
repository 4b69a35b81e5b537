/** What an error advises: a name only where it is near, the right spelling in the message itself, and nothing that cannot be done. */
import t, { type Test } from 'tap'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, WEEK, type Bench } from './harness.js'

const ESTATE: HandMadeEstate = {
  hosts: {
    'shop-web-1': { ip: '10.0.0.1', labels: 'app=web-shop env=prod role=web' },
    'pay-db-1': { ip: '10.0.0.2', labels: 'app=payments env=prod role=db' },
  },
  labels: ['env=staging', 'app=db'],
  ipLists: { 'Branch offices': ['10.9.0.0/16'], Partners: ['192.0.2.0/24'] },
}

const start = (t: Test): Promise<Bench> => startBench(t, { estate: handMade(ESTATE) })

t.test('suggestions', async (t) => {
  const bench = await start(t)
  const meant = (text: string) => /did you mean ['"]([^'"]*)['"]/i.exec(text)?.[1] ?? null

  await t.test('an unknown tool is told a near one, or none', async (t) => {
    for (const [name, expected] of [
      ['get-workload', 'get-workloads'],
      ['get_workloads', 'get-workloads'],
      ['getIplists', 'get-iplists'],
      ['list-labels', 'get-labels'],
      ['remove-label', 'delete-label'],
      ['get-rules', 'get-rulesets'],
      ['provision', 'provision-policy'],
      ['get-firewalls', null],
      ['delete-everything', null],
      ['weather', null],
    ] as const)
      t.equal(meant((await bench.fails(name, {}, 'unknown_tool')).message), expected, name)
  })

  await t.test('an unknown argument is told a near one, the required one first, or none', async (t) => {
    const rule = { ruleset_name: 'x', providers: ['ams'], consumers: ['ams'] }
    for (const [tool, args, expected] of [
      ['create-deny-rule', { ...rule, service: ['HTTPS'] }, 'ingress_services'],
      ['create-ruleset', { name: 'x', scopes: [], rules: [{ ...rule, service: 'HTTPS' }] }, 'ingress_services'],
      ['get-workloads', { host_name: 'x' }, 'hostname'],
      ['get-workloads', { colour: 'red' }, null],
      ['get-traffic-flows', { ...WEEK, sort: 'x' }, null],
    ] as const) {
      const { message } = await bench.fails(tool, args, 'invalid_argument')
      t.equal(meant(message), expected, message)
      t.match(message, /Known: /)
    }
  })

  await t.test('an object that does not exist has near names, or none and the tool that lists them', async (t) => {
    const near = await bench.fails('delete-iplist', { name: 'Branch ofices' }, 'not_found')
    t.same([near.near_names, near.hint], [['Branch offices'], undefined])
    const far = await bench.fails('delete-iplist', { name: 'Printers' }, 'not_found')
    t.same([far.near_names, far.hint], [[], 'Nothing has a similar name; get-iplists lists them.'])
    const app = await bench.fails('enforcement-readiness', { app_name: 'billing', env_name: 'prod' }, 'not_found')
    t.same([app.near_names, app.hint], [[], 'No app label has a similar value; get-labels lists them.'])
    const label = await bench.fails('delete-label', { key: 'env', value: 'integration' }, 'not_found')
    t.same([label.near_names, label.hint], [[], 'No "env" label has a similar value; get-labels lists them.'])
  })
})

t.test('a label that does not resolve is answered with the right spelling in the message', async (t) => {
  const bench = await start(t)
  const about = async (ref: unknown) => {
    const { message, hint } = await bench.fails('get-workloads', { labels: [ref] }, 'unresolved_label_filter')
    return [message, hint]
  }
  const QUERIED = 'Nothing was queried, because leaving a filter out would widen the answer.'
  const HINT = 'Values are exact and case-sensitive; get-labels lists them.'
  t.same(await about('payments'), [`No match for: "payments". Write key=value: "app=payments". ${QUERIED}`, HINT])
  t.same(
    await about('db'),
    [`No match for: "db". Write key=value: "app=db" or "role=db". ${QUERIED}`, HINT],
    'of two keys',
  )
  t.same(await about('paymnts'), [
    `No match for: "paymnts". Write a label as key=value or as its href; did you mean "app=payments"? ${QUERIED}`,
    HINT,
  ])
  t.same(await about('app=paymnts'), [`No match for: "app=paymnts". Did you mean "app=payments"? ${QUERIED}`, HINT])
  t.same(await about('app=billing'), [`No match for: "app=billing". ${QUERIED}`, HINT], 'nothing is near')
  t.same(await about('bu=x'), [
    `No match for: "bu=x". No label has the key "bu". Keys: "app", "env", "role". ${QUERIED}`,
    HINT,
  ])

  const list = await bench.fails(
    'get-traffic-flows',
    { ...WEEK, include_sources: ['iplist:Partner'] },
    'unresolved_label_filter',
  )
  t.same(
    [list.message, list.hint],
    [`No match for: "iplist:Partner". Did you mean "iplist:Partners"? ${QUERIED}`, undefined],
    'get-labels lists no IP lists',
  )

  const scope = await bench.fails('create-ruleset', { name: 'x', scopes: [['payments']] }, 'invalid_scope_label')
  t.equal(scope.message, '"payments" cannot be used in a scope. Write key=value: "app=payments".')
  const rule = { ruleset_name: 'x', ingress_services: ['HTTPS'], consumers: ['ams'] }
  const named = { name: 'x', scopes: [], rules: [{ ...rule, ruleset_name: undefined, providers: ['db'] }] }
  const actor = await bench.fails('create-ruleset', JSON.parse(JSON.stringify(named)), 'invalid_actor')
  t.equal(actor.message, '"db" cannot be used in providers of rule 0. Write key=value: "app=db" or "role=db".')
  const wrong = await bench.fails('create-ruleset', { name: 'x', scopes: [['app=paymnts']] }, 'label_not_found')
  t.equal(wrong.message, 'No label matches "app=paymnts" exactly. Did you mean "app=payments"?')
})

t.test('an empty list of labels is refused, since it would be no filter at all', async (t) => {
  const bench = await start(t)
  for (const tool of ['get-workloads', 'get-rulesets'])
    for (const labels of [[], '[]', ' [ ] ', '']) {
      const { message, argument } = await bench.fails(tool, { labels }, 'invalid_argument')
      t.equal(argument, 'labels', tool)
      t.equal(message, 'labels is empty, which would be no filter. Leave it out to list everything.', tool)
    }
})
