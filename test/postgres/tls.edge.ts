/** Replicas that trust their database by its certificate alone (sslmode=verify-full), and start on no other one. */
import t from 'tap'
import { createWorld } from '../edge/support/authenticated-world.js'
import { startProgram } from '../edge/support/start-program.js'
import { within } from '../edge/support/within.js'
import { linesOf } from '../log-lines.js'
import { underLoad, UNAVAILABLE } from './load.js'
import { makeAuthority } from './make-authority.js'
import { startReplicas } from './replicas.js'
import { startPostgres } from './start-postgres.js'

const HERE = 'DNS:localhost,IP:127.0.0.1'

t.test('three replicas, and a certificate that is renewed', async (t) => {
  const authority = makeAuthority(t)
  const postgres = await startPostgres(t, { certificate: authority.issue({ names: HERE }) })
  const replicas = await startReplicas(t, { postgres, isDirect: true })
  const tally = await underLoad(t, replicas, () => postgres.present(authority.issue({ names: HERE })), {
    allowed: UNAVAILABLE,
  })
  console.error(`renewed: ${JSON.stringify(tally)}`)
  const connections = `SELECT DISTINCT ssl, version LIKE 'TLSv1._' AS is_tls FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE application_name = 'svc-mcp'`
  t.same(await postgres.query(connections), [{ ssl: true, is_tls: true }])
})

t.test('another certificate stops a start at once, without the password', async (t) => {
  const authority = makeAuthority(t)
  const postgres = await startPostgres(t, { certificate: authority.issue({ names: HERE }) })
  const { url } = await postgres.makeDatabase()
  const world = await createWorld(t)
  const named = url.replace('@127.0.0.1:', '@localhost:')

  async function refused(given: string) {
    // It would be waited for much longer than this file may take.
    const env = { ...world.env, MCP_STATE_URL: given, MCP_STATE_CONNECT_TIMEOUT_SECONDS: '3600' }
    const program = startProgram(t, { args: ['--port', '0'], env: { ...env, MCP_KEYSTORE_PATH: undefined } })
    const { code, stdout, stderr } = await within(program.ended, 'it does not start')
    t.equal(code, 1, stderr)
    t.equal((stdout + stderr).includes(postgres.password), false)
    const [said] = linesOf(stderr).filter(({ level }) => level === 60)
    t.equal(said?.remedy, 'Check the user, the password, the database and the certificates that MCP_STATE_URL names.')
    return String(said?.msg).replace(/:\d+\/\w+/, ':PORT/STATE')
  }
  const cannot = (host: string, why: string) =>
    `MCP_STATE_URL: the database at ${host}:PORT/STATE cannot be used: ${why}`

  const other = makeAuthority(t)
  t.same(
    await Promise.all([url, named].map((given) => refused(given.replace(authority.path, other.path)))),
    ['127.0.0.1', 'localhost'].map((host) =>
      cannot(host, 'unable to verify the first certificate (UNABLE_TO_VERIFY_LEAF_SIGNATURE)'),
    ),
    'its authority is another one',
  )
  t.match(await refused(url.replace(/&sslrootcert=.*/, '')), /UNABLE_TO_VERIFY_LEAF_SIGNATURE/, 'and no public one')

  await postgres.present(authority.issue({ names: 'DNS:localhost' }))
  t.match(
    await refused(url),
    /^MCP_STATE_URL: the database at 127\.0\.0\.1:PORT\/STATE cannot be used: .*\(ERR_TLS_CERT_ALTNAME_INVALID\)$/,
  )
  await postgres.present(authority.issue({ names: 'DNS:db.example.com,IP:127.0.0.1' }))
  t.match(
    await refused(named),
    /^MCP_STATE_URL: the database at localhost:PORT\/STATE cannot be used: .*\(ERR_TLS_CERT_ALTNAME_INVALID\)$/,
  )

  await postgres.present(authority.issue({ names: HERE, hasExpired: true }))
  t.equal(await refused(url), cannot('127.0.0.1', 'certificate has expired (CERT_HAS_EXPIRED)'))

  await postgres.present(authority.issue({ names: HERE }))
  const served = await world.serve({ env: { MCP_STATE_URL: named, MCP_KEYSTORE_PATH: undefined } })
  t.ok(served.target, 'and the right one starts')
})
