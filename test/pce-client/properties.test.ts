/** What holds for every href, version, filter and delay there is, rather than for the ones someone thought of. */
import fc from 'fast-check'
import t from 'tap'
import {
  classifyRequest,
  parseRetryAfter,
  readRetryAfter,
  waitBeforeRetry,
  type FailedAttempt,
} from '../../pce-client/retry-policy.js'
import { PceError } from '../../pce-client/index.js'
import { KINDS, type Kind } from '../../pce-client/kinds.js'
import { checkHref, draftHref, hasItems, inVersion } from '../../pce-client/endpoint.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ANY_CHARACTER } from '../any-character.js'
import { clientOf, startServer } from './support.js'

const kinds: readonly Kind[] = Object.values(KINDS)
const anyKind = fc.constantFrom(...kinds)
const anyOrg = fc.integer({ min: 1, max: 99_999 }).map(String)
const wantedVersion = fc.constantFrom<PolicyVersionSelector[]>('draft', 'active', 7)
const anyVersion = fc.oneof(fc.constantFrom('draft', 'active'), fc.integer({ min: 1, max: 9999 }).map(String))

/** Ids as the PCE forms them (P12, P45), and as callers choose them once they are URL-encoded. */
const anyId = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 31 }).map(String),
  fc.uuid(),
  fc.stringMatching(/^S-1-5-21(-[1-9][0-9]{0,9}){1,4}$/),
  fc.stringMatching(/^[a-z][a-z_]{0,30}$/),
  fc
    .string({ unit: ANY_CHARACTER, minLength: 1, maxLength: 12 })
    .filter((text) => !/[/\\]/.test(text) && !/^\.{1,2}$/.test(text))
    .map(encodeURIComponent),
)

/** An href that was built from its kind, by other means than the client reads it. */
interface Specimen {
  kind: Kind
  orgId: string
  version: string
  segments: string[]
}

const hrefOf = ({ segments }: Pick<Specimen, 'segments'>) => `/${segments.join('/')}`

function specimenOf(kinds: fc.Arbitrary<Kind>): fc.Arbitrary<Specimen> {
  return fc.tuple(kinds, anyOrg, anyVersion, anyId, anyId).map(([kind, orgId, version, parent, id]) => {
    const values: Record<string, string> = { '{org_id}': orgId, '{pversion}': version, '{parent}': parent }
    const place = kind.path.slice(1).split('/')
    const segments = [...place.map((segment) => values[segment] ?? segment), ...(hasItems(kind) ? [id] : [])]
    return { kind, orgId, version, segments }
  })
}

const anySpecimen = specimenOf(anyKind)
const itemSpecimen = specimenOf(fc.constantFrom(...kinds.filter(hasItems)))
const orgSpecimen = specimenOf(fc.constantFrom(...kinds.filter((kind) => kind.underOrg)))
const versionedSpecimen = specimenOf(fc.constantFrom(...kinds.filter((kind) => kind.versioned)))

const isRefused = (href: string, { kind, orgId }: Pick<Specimen, 'kind' | 'orgId'>): boolean => {
  try {
    checkHref(kind, orgId, href)
    return false
  } catch (error) {
    if (error instanceof PceError && error.code === 'invalid_href') return true
    throw error
  }
}

/** Runs a property; its counterexample is what a failure shows. */
function holds<Values extends [unknown, ...unknown[]]>(
  title: string,
  property: fc.IProperty<Values> | fc.IAsyncProperty<Values>,
  runs = 500,
) {
  return t.test(title, async (t) => {
    const details = await fc.check(property as fc.IAsyncProperty<Values>, { numRuns: runs })
    t.notOk(details.failed, fc.defaultReportMessage(details) ?? `held for ${details.numRuns} cases`)
  })
}

await holds(
  'an href of the kind and organisation is taken, bare, as a reference or as a whole object',
  fc.property(anySpecimen, ({ kind, orgId, segments }) => {
    const href = hrefOf({ segments })
    return [href, { href }, { href, name: 'x', caps: [] }].every((given) => checkHref(kind, orgId, given) === href)
  }),
  2000,
)

await holds(
  'an href of another organisation is refused',
  fc.property(orgSpecimen, anyOrg, (specimen, other) => {
    fc.pre(other !== specimen.orgId)
    return isRefused(hrefOf(specimen), { kind: specimen.kind, orgId: other })
  }),
)

await holds(
  'an href of another kind is refused',
  fc.property(anySpecimen, anyKind, (specimen, other) => {
    fc.pre(other !== specimen.kind)
    return isRefused(hrefOf(specimen), { kind: other, orgId: specimen.orgId })
  }),
  4000,
)

await holds(
  'an href with more or fewer segments is refused',
  fc.property(itemSpecimen, anyId, fc.nat(), (specimen, extra, at) => {
    const { segments } = specimen
    const place = at % (segments.length + 1)
    const longer = [...segments.slice(0, place), extra, ...segments.slice(place)]
    const shorter = segments.filter((_, index) => index !== at % segments.length)
    return [longer, shorter].every((segments) => isRefused(hrefOf({ segments }), specimen))
  }),
)

await holds(
  'an href that climbs, in any spelling of a dot segment, is refused',
  fc.property(
    itemSpecimen,
    fc.nat(),
    fc.constantFrom('.', '..', '%2e', '%2E', '%2e%2e', '.%2E', '%2e.'),
    (specimen, at, dots) => {
      const segments = specimen.segments.with(at % specimen.segments.length, dots)
      return isRefused(hrefOf({ segments }), specimen)
    },
  ),
)

await holds(
  'an href with a blank, a slash in disguise, a query or a fragment is refused',
  fc.property(
    itemSpecimen,
    fc.nat(),
    fc.constantFrom(' ', '\t', '\n', '\r', '\u00a0', '\u2028', '%2f', '%2F', '%5c', '\\', '?', '#', '//', '%', '%0'),
    (specimen, at, disguise) => {
      const href = hrefOf(specimen)
      const place = at % (href.length + 1)
      // Inside an escape the disguise would make another, harmless one.
      fc.pre(!/%[0-9a-f]?$/i.test(href.slice(0, place)))
      fc.pre(!(disguise.startsWith('%') && disguise.length < 3 && /^[0-9a-f]/i.test(href.slice(place))))
      return isRefused(href.slice(0, place) + disguise + href.slice(place), specimen)
    },
  ),
  2000,
)

await holds(
  'what is no href at all is refused',
  fc.property(anyKind, anyOrg, fc.string({ unit: ANY_CHARACTER }), (kind, orgId, text) =>
    isRefused(text, { kind, orgId }),
  ),
)

await holds(
  'a version conversion changes the version alone, once, and there is a way back',
  fc.property(versionedSpecimen, wantedVersion, ({ segments, version }, wanted) => {
    const href = hrefOf({ segments })
    const converted = inVersion(href, wanted)
    const at = segments.indexOf('sec_policy') + 1
    return (
      converted === hrefOf({ segments: segments.with(at, String(wanted)) }) &&
      inVersion(converted, wanted) === converted &&
      inVersion(converted, version as 'draft') === href
    )
  }),
)

await holds(
  'writes go to the draft of the same object, and to nothing of the past',
  fc.property(versionedSpecimen, ({ kind, segments, version }) => {
    const href = hrefOf({ segments })
    if (version === 'draft' || version === 'active') return draftHref(kind, href) === inVersion(href, 'draft')
    try {
      draftHref(kind, href)
      return false
    } catch (error) {
      return error instanceof PceError && error.code === 'invalid_href'
    }
  }),
)

await holds(
  'an href without versions stays as it is',
  fc.property(specimenOf(fc.constantFrom(...kinds.filter((kind) => !kind.versioned))), ({ kind, segments }) => {
    const href = hrefOf({ segments })
    return draftHref(kind, href) === href && inVersion(href, 'active') === href
  }),
)

const attempts: fc.Arbitrary<FailedAttempt> = fc.record({
  nature: fc
    .tuple(fc.constantFrom('GET', 'POST', 'PUT', 'DELETE'), fc.constantFrom('/labels/1', '/workloads/bulk_create'))
    .map(([method, path]) => classifyRequest(method, path)),
  outcome: fc.oneof(
    fc.constantFrom<FailedAttempt['outcome'][]>('lost', 'final', 429, 500, 502, 503, 504),
    fc.integer({ min: 400, max: 599 }),
  ),
  retryAfterMs: fc.option(fc.integer({ min: 0, max: 60_000 })),
  retriesMade: fc.nat(6),
  retryCount: fc.nat(6),
  elapsedMs: fc.nat(200_000),
  totalTimeoutMs: fc.integer({ min: 1, max: 200_000 }),
  random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
})

await holds(
  'a wait ends before the deadline, and there is none after the last retry or what no retry mends',
  fc.property(attempts, (attempt) => {
    const wait = waitBeforeRetry(attempt)
    if (wait === null) return true
    const { outcome } = attempt
    return (
      wait >= 0 &&
      attempt.elapsedMs + wait <= attempt.totalTimeoutMs &&
      attempt.retriesMade < attempt.retryCount &&
      (outcome === 'lost' || [429, 500, 502, 503, 504].includes(outcome as number))
    )
  }),
  5000,
)

const roomy = attempts.map((attempt) => ({
  ...attempt,
  elapsedMs: 0,
  totalTimeoutMs: 1e9,
  retriesMade: 0,
  retryCount: 5,
}))

await holds(
  'what creates is repeated after a 429 alone; what may be repeated, after everything that passes',
  fc.property(roomy, (attempt) => {
    const passes = attempt.outcome === 'lost' || [429, 500, 502, 503, 504].includes(attempt.outcome as number)
    const expected = attempt.nature.repeatable ? passes : attempt.outcome === 429
    return (waitBeforeRetry(attempt) !== null) === expected
  }),
  2000,
)

await holds(
  'without a word from the PCE each wait is twice the one before, give or take a tenth, the less so the smaller the draw',
  fc.property(
    roomy,
    fc.nat(4),
    fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    (attempt, retriesMade, draw) => {
      const wait = (made: number, random: number) =>
        waitBeforeRetry({ ...attempt, outcome: 429, retryAfterMs: null, retriesMade: made, retryCount: 6, random })!
      const middle = 1000 * 2 ** retriesMade
      const [smaller, larger] = [attempt.random, draw].toSorted((a, b) => a - b) as [number, number]
      return (
        Math.abs(wait(retriesMade, draw) - middle) <= middle / 10 &&
        wait(retriesMade, smaller) <= wait(retriesMade, larger) &&
        wait(retriesMade, attempt.random) < wait(retriesMade + 1, draw)
      )
    },
  ),
)

await holds(
  "the PCE's own wait is kept to",
  fc.property(roomy, fc.nat(60_000), (attempt, retryAfterMs) => {
    const wait = waitBeforeRetry({ ...attempt, retryAfterMs })
    return wait === null || wait === retryAfterMs
  }),
)

const NOW = Date.UTC(2026, 2, 1, 12)

await holds(
  'Retry-After in seconds is that long, for at most a minute',
  fc.property(
    fc.oneof(fc.nat(100), fc.nat(), fc.bigInt({ min: 0n, max: 10n ** 400n })),
    fc.stringMatching(/^[ \t]*$/),
    (seconds, blank) => {
      return parseRetryAfter(`${blank}${seconds}${blank}`, NOW) === Math.min(Number(seconds) * 1000, 60_000)
    },
  ),
)

await holds(
  'Retry-After as a date is the time until then, for at most a minute, and none when it is past',
  fc.property(fc.integer({ min: -200_000, max: 200_000 }), (seconds) => {
    const date = new Date(NOW + seconds * 1000).toUTCString()
    const until = Math.max(seconds * 1000, 0)
    return readRetryAfter(date, NOW) === until && parseRetryAfter(date, NOW) === Math.min(until, 60_000)
  }),
)

await holds(
  'no other Retry-After makes a wait that is negative, too long or no number',
  fc.property(fc.oneof(fc.string({ unit: ANY_CHARACTER }), fc.stringMatching(/^[-+0-9.:eE, a-zA-Z]*$/)), (text) => {
    const wait = parseRetryAfter(text, NOW)
    return wait === null || (wait >= 0 && wait <= 60_000)
  }),
  3000,
)

await holds(
  'Retry-After that is neither seconds nor a date is as good as none',
  fc.property(
    fc.oneof(
      fc.constantFrom('', '-1', '1.5', '1e3', '0x10', 'soon', 'now', '+5', '5s', '１'),
      fc.stringMatching(/^[a-z ]*$/),
    ),
    (text) => {
      return parseRetryAfter(text, NOW) === null && parseRetryAfter(undefined, NOW) === null
    },
  ),
)

t.test('over HTTP', async (t) => {
  const server = await startServer(t, () => ({ body: [] }))
  const client = clientOf(server, { orgId: 7 })
  const lastQuery = () => new URLSearchParams(server.seen.at(-1)!.path.split('?')[1])

  const labelFilter = fc.array(
    fc.array(
      fc.integer({ min: 1 }).map((id) => `/orgs/7/labels/${id}`),
      { maxLength: 4 },
    ),
    { maxLength: 4 },
  )
  await fc.assert(
    fc.asyncProperty(labelFilter, async (labels) => {
      await client.workloads.get('draft', null, { params: { labels } })
      const query = lastQuery()
      t.strictSame([[...query.keys()], JSON.parse(query.get('labels')!)], [['labels'], labels])
    }),
    { numRuns: 50 },
  )
  t.pass('a list of lists of labels arrives as the same JSON')

  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string({ minLength: 1 }), fc.string({ unit: ANY_CHARACTER })), async (params) => {
      await client.get('labels', { params })
      t.strictSame(Object.fromEntries(lastQuery()), { ...params })
    }),
    { numRuns: 100 },
  )
  t.pass('every name and value of a parameter arrives as it is')

  await fc.assert(
    fc.asyncProperty(fc.string({ unit: ANY_CHARACTER, minLength: 1 }), async (id) => {
      fc.pre(!/^\.{1,2}$/.test(id))
      await client.get(`vulnerabilities/${encodeURIComponent(id)}`)
      const [orgs, org, kind, seen, ...rest] = server.seen.at(-1)!.path.slice(1).split('/')
      t.strictSame([orgs, org, kind, decodeURIComponent(seen!), rest], ['orgs', '7', 'vulnerabilities', id, []])
    }),
    { numRuns: 100 },
  )
  t.pass('every id that was URL-encoded arrives as one segment')

  const { length } = server.seen
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(client.labels, client.workloads, client.vens),
      anySpecimen.filter(({ kind }) => !['labels', 'workloads', 'vens'].includes(kind.specName)),
      async (api, specimen) => {
        await t.rejects(async () => void (await api.getByReference(hrefOf(specimen))), { code: 'invalid_href' })
      },
    ),
    { numRuns: 100 },
  )
  t.equal(server.seen.length, length, 'an href of another kind makes no request')
})
