import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { inScratch } from './in-scratch.js'

const USERS = 10_000
const LOOK_UPS = 20_000
const CLAIMS = 2000

/** The pace of sequential calls: how many per second, and the 99th percentile in milliseconds. */
export interface Pace {
  perSecond: number
  p99: number
}

export interface KeystorePaces {
  users: number
  /** Milliseconds to open the full file, including the integrity check. */
  open: number
  /** Durable registrations. */
  write: Pace
  /** Look-ups for which a client already exists, so that only the version is read. */
  find: Pace
  /** Look-ups that decrypt the credentials. */
  findAndOpen: Pace
  /** Durable claims of confirm tokens. */
  claim: Pace
}

/**
 * Fills a keystore with 10,000 users and looks them up at random, in this process, as a server does. Takes about 15 s.
 */
export function measureKeystore(): Promise<KeystorePaces> {
  return inScratch(async ({ directory }) => {
    const config = { path: join(directory, 'keystore.db'), kek: randomBytes(32) }
    const now = () => Date.now()
    const filling = await openKeystoreState(config, { now })
    const write = await pace(USERS, (number) => filling.keystore.write(ownerOf(number), CREDENTIALS))
    await filling.state.close()

    const started = performance.now()
    const { state, keystore } = await openKeystoreState(config, { now })
    const open = performance.now() - started
    const anybody = () => ownerOf(Math.floor(Math.random() * USERS))
    const find = await pace(LOOK_UPS, () => keystore.find(anybody()))
    const findAndOpen = await pace(LOOK_UPS, async () => (await keystore.find(anybody()))!.open())
    const claim = await pace(CLAIMS, (number) => state.usedTokens.claim(`token-${number}`, now() + 120_000))
    await state.close()
    return { users: USERS, open, write, find, findAndOpen, claim }
  })
}

/** Formats the lines of `npm run bench`. */
export function describeKeystore({ users, open, write, find, findAndOpen, claim }: KeystorePaces): string[] {
  const line = (what: string, { perSecond, p99 }: Pace) =>
    `  ${what.padEnd(28)}${perSecond.toFixed(0).padStart(7)} /s   p99 ${p99.toFixed(3)} ms`
  return [
    `keystore with ${users.toLocaleString('en')} users, one call after the other`,
    line('register (on the disk)', write),
    line('look-up, version only', find),
    line('look-up and decrypt', findAndOpen),
    line('claim a token (on the disk)', claim),
    `  ${'open and check the file'.padEnd(28)}${open.toFixed(0).padStart(7)} ms`,
  ]
}

const CREDENTIALS = {
  host: 'pce.example.com',
  port: 8443,
  orgId: 1,
  apiKey: `api_${'0123456789abcdef'}`,
  apiSecret: 'f'.repeat(64),
  tlsVerify: true,
  label: 'bench',
}

const ownerOf = (number: number) => ({ iss: 'https://login.example.com/tenant/v2.0', sub: `user-${number}` })

async function pace(count: number, call: (number: number) => Promise<unknown>): Promise<Pace> {
  const times = new Float64Array(count)
  const started = performance.now()
  for (let number = 0; number < count; number++) {
    const before = performance.now()
    await call(number)
    times[number] = performance.now() - before
  }
  const perSecond = (1000 * count) / (performance.now() - started)
  return { perSecond, p99: times.sort()[Math.ceil(count * 0.99) - 1]! }
}
