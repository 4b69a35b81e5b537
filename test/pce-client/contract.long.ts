import t from 'tap'
import { readingOperations } from './contract/generic/read.js'
import { writingOperations } from './contract/generic/write.js'
import { accessKinds } from './contract/kinds/access.js'
import { deviceKinds } from './contract/kinds/devices.js'
import { insightKinds } from './contract/kinds/insight.js'
import { inventoryKinds } from './contract/kinds/inventory.js'
import { policyKinds } from './contract/kinds/policy.js'
import { ruleKinds } from './contract/kinds/rules.js'
import { settingsKinds } from './contract/kinds/settings.js'
import { virtualKinds } from './contract/kinds/virtual.js'
import { accessOperations } from './contract/operations/access.js'
import { defaultsOperations } from './contract/operations/defaults.js'
import { insightOperations } from './contract/operations/insight.js'
import { labelOperations } from './contract/operations/labels.js'
import { networkDeviceOperations } from './contract/operations/network-devices.js'
import { policyOperations } from './contract/operations/policy.js'
import { statusOperations } from './contract/operations/status.js'
import { trafficOperations } from './contract/operations/traffic.js'
import { venOperations } from './contract/operations/vens.js'
import { workloadOperations } from './contract/operations/workloads.js'
import { proveKind } from './contract/prove-kind.js'
import { coverageOf, type Dimension } from './contract/record-coverage.js'
import { SPECIFICATION } from './contract/specification.js'
import { startContractPce, operationNames } from './contract/start-contract-pce.js'
import { requestOperations } from './contract/transport/requests.js'
import { settingOperations } from './contract/transport/settings.js'

t.test('object kinds', async (t) => {
  const areas = {
    inventoryKinds,
    deviceKinds,
    policyKinds,
    ruleKinds,
    virtualKinds,
    insightKinds,
    accessKinds,
    settingsKinds,
  }
  for (const [area, rowsOf] of Object.entries(areas)) {
    await t.test(area, async (t) => {
      const pce = await startContractPce(t)
      for (const row of await rowsOf(pce)) await proveKind(t, pce, row)
    })
  }
})

t.test('generic operations', async (t) => {
  const pce = await startContractPce(t, { workloads: 560 })
  await t.test('read', (t) => readingOperations(t, pce))
  await t.test('write', (t) => writingOperations(t, pce))
})

t.test('transport operations', async (t) => {
  const pce = await startContractPce(t)
  await t.test('requests', (t) => requestOperations(t, pce))
  await t.test('settings', (t) => settingOperations(t, pce))
})

t.test('named operations', async (t) => {
  const areas = {
    defaultsOperations,
    trafficOperations,
    policyOperations,
    accessOperations,
    networkDeviceOperations,
    insightOperations,
    venOperations,
    workloadOperations,
    labelOperations,
    statusOperations,
  }
  for (const [area, prove] of Object.entries(areas)) {
    await t.test(area, async (t) => prove(t, await startContractPce(t)))
  }
})

t.test('every operation of the specification has a name for metrics, and none has an id in it', (t) => {
  const named = /^(GET|POST|PUT|DELETE) [a-z_]+(\/([a-z_]+|\{id\}|\{version\}))*$/
  const others = [...operationNames].filter((name) => !named.test(name))
  t.strictSame(others, ['other'], 'that of a path which no operation has')
  t.ok(operationNames.size > 150, `${operationNames.size} names`)
  t.end()
})

t.test('the whole specification is proven', async (t) => {
  const sizes: Record<Dimension, number> = {
    kinds: 56,
    'generic operations': 11,
    transport: 11,
    'named operations': 68,
  }
  const table = Object.entries(sizes).map(([dimension, size]) => {
    const names: readonly string[] = SPECIFICATION[dimension as Dimension]
    const proven = coverageOf(dimension as Dimension)
    t.equal(new Set(names).size, size, `${dimension}: the specification has ${size}`)
    t.strictSame(
      {
        missing: names.filter((name) => !proven.has(name)),
        unknown: [...proven].filter((name) => !names.includes(name)),
      },
      { missing: [], unknown: [] },
      `${dimension}: every one was proven by a test that ran`,
    )
    return `${dimension} ${proven.size}/${size}`
  })
  t.comment(table.join(', '))
  // Standard error is what the runner passes through.
  console.error(`contract: ${table.join(', ')}`)
})
