import type { Test } from 'tap'
import { contains, partial } from '../../../partial.js'
import { checkResult, proveOperation } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

const VENS = '/orgs/1/vens'
const RELEASES = '/orgs/1/software/ven/releases'
const NO_VEN = `${VENS}/00000000-dead-4000-8000-000000000000`

/** Agents and their software (P13, P24). */
export async function venOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator, ask } = pce
  const all = (await pce.list(VENS)).filter(({ status }) => status === 'active')
  const [one, two, three] = all.map(({ href }) => href) as [string, string, string]
  const ref = (...hrefs: string[]) => hrefs.map((href) => ({ href }))
  const find = (href: string) => simulator.state.find(href)
  const bad = (path: string, method = 'PUT') => ({ status: 406, method, path, token: 'input_validation_error' })

  await proveOperation(t, pce, 'ven_remote_action', async (t) => {
    const path = `${VENS}/remote_action`
    const errors = await client.venRemoteAction([one], 'restart')
    pce.wire(t, { method: 'PUT', path, body: { vens: ref(one), action: 'restart' }, status: [200, 204] }, 'documented')
    t.strictSame(errors, [], 'nothing went wrong')
    await client.venRemoteAction([one, two], 'restart')
    const wire = { method: 'PUT', path, status: [200, 204] }
    pce.wire(
      t,
      [one, two].map((href) => ({ ...wire, body: { vens: ref(href), action: 'restart' } })),
      'one VEN at a time',
    )
    await pce.refused(t, () => client.venRemoteAction([one], 'dance'), bad(path), 'another action')
  })

  await proveOperation(t, pce, 'ven_auth_recovery', async (t) => {
    const path = `${VENS}/authentication_recovery`
    const errors = await client.venAuthRecovery([one, two])
    const body = simulator.requests[0]?.body as Json
    t.strictSame(body.vens, ref(one, two))
    t.equal(body.recovery_enabled, true, 'with the fields the PCE requires')
    const seconds = body.recovery_duration_seconds as number
    t.ok(Number.isInteger(seconds) && seconds >= 3600 && seconds <= 2_592_000, `${seconds} s`)
    pce.wire(t, { method: 'PUT', path, body, status: [200, 204] }, 'and nothing else')
    t.strictSame(errors, [], 'nothing went wrong')
    t.equal(find(two)?.authentication_recovery, true, 'the VEN may recover')
    const off = { vens: ref(two), recovery_enabled: false, recovery_duration_seconds: 3600 }
    await client.venAuthRecovery([two], { json: { recovery_enabled: false, recovery_duration_seconds: 3600 } })
    t.strictSame(pce.look()[0]?.body, off, 'with the caller’s own values')
    t.equal(find(two)?.authentication_recovery, false)
    const short = () => client.venAuthRecovery([two], { json: { recovery_duration_seconds: 60 } })
    await pce.refusedHere(t, short, 'invalid_integer', 'a bad duration')
    const attempt = () => client.venAuthRecovery([two], { json: { recovery_enabled: 'maybe' } })
    await pce.refused(t, attempt, bad(path), 'a bad body')
  })

  await proveOperation(t, pce, 'get_ven_statistics', async (t) => {
    const path = `${VENS}/statistics`
    const statistics = (await client.getVenStatistics([one, two])) as unknown as Json
    const body = simulator.requests[0]?.body as { property_counts: { property: string }[] }
    t.strictSame(Object.keys(body), ['property_counts'], 'the documented body')
    const known = ['status', 'version', 'health', 'condition', 'os_id', 'enforcement_mode', 'ven_type']
    t.ok(body.property_counts.length > 0 && body.property_counts.every(({ property }) => known.includes(property)))
    pce.wire(t, { method: 'POST', path, body }, 'in a POST')
    checkResult(t, 'get_ven_statistics', statistics)
    const json = { property_counts: [{ property: 'status', values: ['active'] }] }
    const counts = await client.getVenStatistics([one, two], { json })
    pce.wire(t, { method: 'POST', path, body: json }, 'the caller’s own question')
    const text = JSON.stringify(counts)
    contains(t, text, '"status"')
    t.match(text, new RegExp(`"unfiltered_count":${all.length}\\b`), 'counts the VENs of the PCE')
    const attempt = () => client.getVenStatistics([one], { json: { property_counts: [{ property: 'colour' }] } })
    await pce.refused(t, attempt, bad(path, 'POST'), 'a property that does not exist')
  })

  let releases: { release: string; default: boolean; href: string }[] = []
  await proveOperation(t, pce, 'get_ven_software_releases', async (t) => {
    releases = await client.getVenSoftwareReleases()
    pce.wire(t, { method: 'GET', path: RELEASES }, 'the list')
    t.ok(releases.length > 1, `${releases.length} releases`)
    t.equal(releases.filter((release) => release.default).length, 1, 'one is the default')
    checkResult(t, 'get_ven_software_releases', releases)
    await client.getVenSoftwareReleases({ params: { ven_type: 'server' } })
    pce.wire(t, { method: 'GET', path: RELEASES, query: { ven_type: 'server' } }, 'of a type')
    pce.refuseNext('GET', RELEASES, 403, 'forbidden_error')
    const facts = { status: 403, method: 'GET', path: RELEASES, token: 'forbidden_error' }
    await pce.refused(t, () => client.getVenSoftwareReleases(), facts, 'forbidden')
  })
  const normal = releases.find((release) => release.default)?.release ?? 'none'
  const [other = 'none', spare = 'none'] = releases.filter((release) => !release.default).map(({ release }) => release)

  await proveOperation(t, pce, 'get_ven_software_release', async (t) => {
    const release = await client.getVenSoftwareRelease(normal)
    pce.wire(t, { method: 'GET', path: `${RELEASES}/${normal}` }, 'by its name')
    partial(t, release, { release: normal, default: true })
    checkResult(t, 'get_ven_software_release', release)
    const facts = { status: 404, method: 'GET', path: `${RELEASES}/0.0.0-1` }
    await pce.refused(t, () => client.getVenSoftwareRelease('0.0.0-1'), facts, 'an unknown release')
  })

  await proveOperation(t, pce, 'get_ven_release_images', async (t) => {
    const images = await client.getVenReleaseImages(normal)
    pce.wire(t, { method: 'GET', path: `${RELEASES}/${normal}/images` }, 'of the release')
    t.ok(images.length > 0)
    t.ok((images as Json[]).every(({ release }) => release === normal))
    checkResult(t, 'get_ven_release_images', images)
    const facts = { status: 404, method: 'GET', path: `${RELEASES}/0.0.0-1/images` }
    await pce.refused(t, () => client.getVenReleaseImages('0.0.0-1'), facts, 'an unknown release')
  })

  await proveOperation(t, pce, 'set_default_ven_release', async (t) => {
    const path = `${RELEASES}/default`
    t.equal(await client.setDefaultVenRelease(other), undefined)
    pce.wire(t, { method: 'PUT', path, body: { release: other }, status: 204 }, 'the release')
    const after = (await pce.ask<{ release: string; default: boolean }[]>('GET', RELEASES)) ?? []
    t.strictSame(
      after.filter((release) => release.default).map(({ release }) => release),
      [other],
      'is the default now, and no other',
    )
    await ask('PUT', path, { release: normal })
    const error = (await client.setDefaultVenRelease('0.0.0-1').catch((thrown: unknown) => thrown)) as Json
    t.ok([404, 406].includes(error.status as number), 'an unknown release is refused')
    const facts = { status: error.status as number, method: 'PUT', path }
    await pce.refused(t, () => client.setDefaultVenRelease('0.0.0-1'), facts, 'an unknown release')
  })

  await proveOperation(t, pce, 'upgrade_vens', async (t) => {
    const path = `${VENS}/upgrade`
    const errors = await client.upgradeVens([one], normal)
    pce.wire(t, { method: 'PUT', path, body: { vens: ref(one), release: normal } }, 'the documented body')
    t.ok(Array.isArray(errors))
    const { version, upgrade_target_version } = find(one)!
    t.ok([version, upgrade_target_version].includes(normal), 'the VEN is, or is to be, of that release')
    const failed = (await client.upgradeVens([NO_VEN], normal)) as unknown as Json[]
    partial(t, failed, [{ token: /./, message: /./, hrefs: [NO_VEN] }], 'an unknown VEN is an entry of the answer')
    checkResult(t, 'upgrade_vens', failed)
    simulator.clearRequests()
    await pce.refused(
      t,
      () => client.upgradeVens([one], '0.0.0-1'),
      { status: 406, method: 'PUT', path },
      'a bad release',
    )
  })

  await proveOperation(t, pce, 'delete_ven_software_release', async (t) => {
    const path = `${RELEASES}/${spare}`
    t.equal(await client.deleteVenSoftwareRelease(spare), undefined)
    pce.wire(t, { method: 'DELETE', path, status: 204 }, 'by its name')
    t.notOk(
      (await pce.ask<{ release: string }[]>('GET', RELEASES)).some(({ release }) => release === spare),
      'gone',
    )
    await pce.refused(
      t,
      () => client.deleteVenSoftwareRelease(spare),
      { status: 404, method: 'DELETE', path },
      'unknown',
    )
  })

  await proveOperation(t, pce, 'unpair_vens', async (t) => {
    const path = `${VENS}/unpair`
    const errors = await client.unpairVens([three])
    const body = { vens: ref(three), firewall_restore: 'default' }
    pce.wire(t, { method: 'PUT', path, body }, 'with the default')
    t.strictSame(errors, [], 'nothing went wrong')
    t.ok([undefined, 'uninstalled'].includes(find(three)?.status as undefined), 'the VEN is uninstalled or gone')
    const failed = (await client.unpairVens([NO_VEN], 'saved')) as unknown as Json[]
    pce.wire(t, { method: 'PUT', path, body: { vens: ref(NO_VEN), firewall_restore: 'saved' } }, 'another way')
    partial(t, failed, [{ token: /./, message: /./, hrefs: [NO_VEN] }], 'an unknown VEN is an entry of the answer')
    checkResult(t, 'unpair_vens', failed)
    await pce.refused(t, () => client.unpairVens([one], 'never' as never), bad(path), 'a bad way')
  })
}
