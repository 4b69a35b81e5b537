import { type TInteger, Type } from '@sinclair/typebox'

/** Maximum number of objects in one answer, regardless of what the caller requests. */
export const MAX_PAGE = 10_000

/**
 * The page sizes of list tools if the caller names none (D254): as many rows as a person reads. Rows that are a line or
 * two, such as labels, come by fifty, and rows with many fields by twenty-five.
 */
export const SHORT_ROWS = 50
export const LONG_ROWS = 25

/** The `fields` argument of every tool that returns rows; it selects the fields of the rows to return (D131). */
export const FieldsInput = {
  fields: Type.Optional(Type.Array(Type.String(), { description: 'Only these' })),
}

/** The paging arguments of every list tool (D2). */
export const PagingInput = {
  max_results: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: 'Page size' })),
  cursor: Type.Optional(Type.String({ description: 'next_cursor' })),
  ...FieldsInput,
}

/**
 * Returns PagingInput with `most` as the default page size. The documentation names it, as `usual`. It is not a default
 * of the schema: a tool has to see whether the caller chose a size, and a model learns from each answer how much
 * follows, so tools/list need not name the size of every list.
 */
export const pagingInput = (most: number) => ({
  ...PagingInput,
  max_results: usualSize(PagingInput.max_results, most),
})

/** Returns the schema of an integer argument with the size that a tool takes if the caller names none. */
export const usualSize = (schema: TInteger, most: number) => Type.Optional(Type.Integer({ ...schema, usual: most }))

/** The paging properties in the output of every list tool (D2). */
export const PagingOutput = {
  total_count: Type.Integer({ description: 'Matches in all' }),
  pce_total: Type.Integer({ description: 'X-Total-Count of the query' }),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
}
