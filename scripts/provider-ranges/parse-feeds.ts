/**
 * The parsers, one for each feed format. A parser returns CIDRs by provider, or throws an error that says where the
 * text deviates from the format.
 */
import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

export interface FeedFacts {
  /** The date (YYYY-MM-DD) that the feed states, if any. */
  asOf?: string
  /** The CIDRs by provider, as they are written in the feed. */
  ranges: Record<string, string[]>
}

/** The schema of a date in a feed, which begins with YYYY-MM-DD. */
const Day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}' })
const Texts = Type.Array(Type.String())

/** Parses ip-ranges.json of AWS. Returns the ranges of the services named in `services`, each for its provider. */
export const parseAws = (services: Readonly<Record<string, string>>) => (text: string) => {
  const feed = readJson(
    Type.Object({
      createDate: Day,
      prefixes: Type.Array(Type.Object({ ip_prefix: Type.String(), service: Type.String() })),
      ipv6_prefixes: Type.Array(Type.Object({ ipv6_prefix: Type.String(), service: Type.String() })),
    }),
    text,
  )
  const all = [
    ...feed.prefixes.map(({ ip_prefix, service }) => ({ range: ip_prefix, service })),
    ...feed.ipv6_prefixes.map(({ ipv6_prefix, service }) => ({ range: ipv6_prefix, service })),
  ]
  const ranges = Object.entries(services).map(([service, provider]) => {
    return [provider, all.filter((one) => one.service === service).map(({ range }) => range)] as const
  })
  return facts(Object.fromEntries(ranges), feed.createDate)
}

/** Parses goog.json and cloud.json of Google. */
export const parseGoogle = (provider: string) => (text: string) => {
  const Prefix = Type.Union([Type.Object({ ipv4Prefix: Type.String() }), Type.Object({ ipv6Prefix: Type.String() })])
  const feed = readJson(Type.Object({ creationTime: Day, prefixes: Type.Array(Prefix) }), text)
  const ranges = feed.prefixes.map((one) => ('ipv4Prefix' in one ? one.ipv4Prefix : one.ipv6Prefix))
  return facts({ [provider]: ranges }, feed.creationTime)
}

/** Parses lists with one CIDR on each line, as Cloudflare and Zoom publish them. */
export const parseLines = (provider: string) => (text: string) => facts({ [provider]: filledLines(text) })

/** Parses public-ip-list of Fastly. */
export const parseFastly = (provider: string) => (text: string) => {
  const feed = readJson(Type.Object({ addresses: Texts, ipv6_addresses: Texts }), text)
  return facts({ [provider]: [...feed.addresses, ...feed.ipv6_addresses] })
}

/**
 * Parses /meta of GitHub. Only the addresses to which clients connect are used. Runners (`actions`) are left out,
 * because they belong to Azure and make only outbound connections.
 */
export const parseGitHub = (provider: string) => (text: string) => {
  const feed = readJson(Type.Object({ web: Texts, api: Texts, git: Texts, packages: Texts, pages: Texts }), text)
  return facts({ [provider]: [...feed.web, ...feed.api, ...feed.git, ...feed.packages, ...feed.pages] })
}

/**
 * Parses ip-ranges.atlassian.com. Only the addresses to which clients connect are used. Addresses that make only
 * outbound connections often belong to other providers.
 */
export const parseAtlassian = (provider: string) => (text: string) => {
  const Item = Type.Object({ cidr: Type.String(), direction: Texts })
  const feed = readJson(Type.Object({ creationDate: Day, items: Type.Array(Item) }), text)
  const inbound = feed.items.filter(({ direction }) => direction.includes('ingress'))
  return facts({ [provider]: inbound.map(({ cidr }) => cidr) }, feed.creationDate)
}

/** Parses ip-ranges.json of Salesforce, in which each entry has a list of CIDRs. */
export const parseSalesforce = (provider: string) => (text: string) => {
  const feed = readJson(
    Type.Object({
      createDate: Day,
      prefixes: Type.Array(Type.Object({ ip_prefix: Texts })),
      ipv6_prefixes: Type.Array(Type.Object({ ipv6_prefix: Texts })),
    }),
    text,
  )
  const ranges = [
    ...feed.prefixes.flatMap(({ ip_prefix }) => ip_prefix),
    ...feed.ipv6_prefixes.flatMap(({ ipv6_prefix }) => ipv6_prefix),
  ]
  return facts({ [provider]: ranges }, feed.createDate)
}

/**
 * Parses the endpoints of Microsoft 365 by service area. Endpoints without `ips` are left out: only their names are
 * known.
 */
export const parseMicrosoft365 = (areas: Readonly<Record<string, string>>) => (text: string) => {
  const feed = readJson(Type.Array(Type.Object({ serviceArea: Type.String(), ips: Type.Optional(Texts) })), text)
  const ranges = Object.entries(areas).map(([area, provider]) => {
    return [provider, feed.filter((one) => one.serviceArea === area).flatMap(({ ips = [] }) => ips)] as const
  })
  return facts(Object.fromEntries(ranges))
}

/** Parses msft-public-ips.csv: a heading, then lines of `Prefix,Type`. */
export const parseMicrosoftCsv = (provider: string) => (text: string) => {
  const [heading, ...lines] = filledLines(text)
  if (heading?.startsWith('Prefix,') !== true) throw new Error('line 1: expected the heading "Prefix,Type"')
  return facts({ [provider]: lines.map((line) => line.split(',')[0]!.trim()) })
}

function facts(ranges: Record<string, string[]>, date?: string): FeedFacts {
  return { ...(date === undefined ? {} : { asOf: date.slice(0, 10) }), ranges }
}

function filledLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function readJson<T extends TSchema>(schema: T, text: string): Static<T> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`not JSON: ${(error as Error).message}`, { cause: error })
  }
  const wrong = Value.Errors(schema, value).First()
  if (wrong !== undefined) throw new Error(`${wrong.path === '' ? 'top level' : wrong.path}: ${wrong.message}`)
  return value
}
