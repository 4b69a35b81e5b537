import { Type } from '@sinclair/typebox'

/** Maximum number of objects in one answer, regardless of what the caller requests. */
export const MAX_PAGE = 10_000

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

/** Returns PagingInput with `most` as the default page size, for tools whose answers are short by default. */
export const pagingInput = (most: number) => ({
  ...PagingInput,
  max_results: Type.Optional(Type.Integer({ ...PagingInput.max_results, default: most })),
})

/** The paging properties in the output of every list tool (D2). */
export const PagingOutput = {
  total_count: Type.Integer({ description: 'Matches in all' }),
  pce_total: Type.Integer({ description: 'X-Total-Count of the query' }),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
}
