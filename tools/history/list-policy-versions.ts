import { Type, type Static } from '@sinclair/typebox'
import type { ToolContext } from '../../domain/call.js'
import { PagingOutput, pagingInput } from '../../schemas/paging.js'
import type { PolicyVersion } from '../../schemas/pce/policy.js'
import { defineTool } from '../define.js'
import { loadVersions } from '../../domain/history/read-versions.js'
import { readSpan } from '../../domain/history/read-span.js'
import { loadAuthorNames } from '../../domain/inventory/reference-names.js'
import { nearPeople } from '../../domain/text/compare-texts.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { answerPage, decodeCursor, pageSize, sliceOfList } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { VersionOut, showVersion } from '../answers/show-versions.js'

const NAME = 'list-policy-versions'
const DEFAULT_MAX_RESULTS = 50
/** Maximum number of authors whose names are read to find one by name. */
const MOST_FILTERED = 100
/** Maximum number of authors named in a note. */
const MOST_NAMED = 10

const output = Type.Object({
  versions: Type.Array(Type.Partial(VersionOut), { description: 'Newest first' }),
  newest: Type.Optional(Type.Integer({ description: 'The version in force' })),
  oldest: Type.Optional(Type.Integer({ description: 'The oldest one that the PCE lists' })),
  ...PagingOutput,
  note: Type.Optional(Type.String({ description: 'What is missing, or why there is nothing' })),
})

export default defineTool({
  name: NAME,
  summary: 'Provisioned policy versions, newest first: when, by whom, message, counts.',
  effect: 'read',
  reads: 'everything',
  toolset: 'history',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 22, and: 'with author, one for each author' },
  input: Type.Object(
    {
      since: Type.Optional(Type.String({ description: 'Only versions from this date or time on', listed: '' })),
      until: Type.Optional(
        Type.String({ description: 'Only versions up to this date or time, inclusive', listed: '' }),
      ),
      author: Type.Optional(Type.String({ minLength: 1, description: 'Exact user name or href', listed: '' })),
      text: Type.Optional(
        Type.String({ minLength: 1, description: 'Part of the commit message, in any case', listed: 'In the message' }),
      ),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { max_results: 10 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults = DEFAULT_MAX_RESULTS, fields, ...filters } = args
    const select = selectFields(fields, VersionOut)
    const span = readSpan(filters)
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const { versions, total } = await loadVersions(ctx.pce, ctx.signal)
    const inTime = versions.filter(({ created_at: at, commit_message: message }) => {
      const isSaid = filters.text === undefined || (message ?? '').toLowerCase().includes(filters.text.toLowerCase())
      return isSaid && span.has(at)
    })
    const { found, names, note } = await filterByAuthor(filters.author, inTime, ctx)
    const slice = { ...sliceOfList(found, position, pageSize(maxResults, ctx.limits, fields)), pceTotal: total }
    const shownNames = names ?? (await loadAuthorNames(ctx.pce, authorsOf(slice.items), ctx.signal))
    const newest = versions[0]?.version
    const rows = slice.items.map((version) => select(showVersion(version, newest, (href) => shownNames.get(href))))
    const notes = [
      versions.length < total ? `The PCE lists ${versions.length} of its ${total} versions.` : '',
      note ?? '',
      versions.length === 0 ? 'Nothing was ever provisioned.' : '',
    ].filter((note) => note !== '')
    const facts = {
      ...(newest !== undefined && { newest, oldest: versions.at(-1)?.version as number }),
      ...(notes.length > 0 && { note: notes.join(' ') }),
    }
    const { rows: shown, paging } = await answerPage(NAME, filters, slice, rows, ctx, { versions: [], ...facts })
    return { versions: shown, ...facts, ...paging }
  },
})

const authorsOf = (versions: readonly PolicyVersion[]) => versions.flatMap(({ created_by: by }) => by?.href ?? [])

/**
 * Returns the versions of one author, given by href or by exact name. Also returns the names of authors, if any were
 * read to find this one.
 */
async function filterByAuthor(
  author: string | undefined,
  versions: PolicyVersion[],
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
): Promise<{ found: PolicyVersion[]; names?: ReadonlyMap<string, string>; note?: string }> {
  const wanted = author?.trim()
  if (wanted === undefined) return { found: versions }
  if (wanted.startsWith('/')) return { found: versions.filter(({ created_by: by }) => by?.href === wanted) }
  const authors = new Set(authorsOf(versions))
  const names = await loadAuthorNames(pce, [...authors], signal, MOST_FILTERED)
  const found = versions.filter(({ created_by: by }) => by != null && names.get(by.href) === wanted)
  const unnamed = authors.size - names.size
  if (unnamed > 0)
    return { found, names, note: `The names of ${countOf(unnamed, 'author')} are not known: an href finds theirs.` }
  if (found.length > 0 || authors.size === 0) return { found, names }
  const [near] = nearPeople(wanted, new Set(names.values()), 1)
  const known = [...new Set(names.values())].sort().slice(0, MOST_NAMED).map(quote).join(', ')
  // The caller may mean a person with exactly this name who has provisioned nothing. So an author with a similar name
  // is only mentioned, and that author's versions are not returned.
  const advice = near === undefined ? `they are by ${known}.` : `the most similar name among them is ${quote(near)}.`
  return { found, names, note: `None of these versions is by ${quote(wanted)}; ${advice}` }
}
