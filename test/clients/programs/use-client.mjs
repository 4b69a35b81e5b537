/** What session.mjs does with a client, for those that have the methods of the SDK's. */
export const useClient = (client) => ({
  listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
  readResource: async (uri) => textOf((await client.readResource({ uri })).contents),
  call: async (name, args) => answerOf(await client.callTool({ name, arguments: args })),
  close: () => client.close(),
})

/** The answer of a call as scripts/clients.ts judges it. */
export const answerOf = ({ isError = false, content }) => ({ isError, text: textOf(content) })

/** The text of the only block. */
export function textOf(blocks) {
  if (blocks.length !== 1) throw new Error(`${blocks.length} blocks, where one was expected`)
  return blocks[0].text
}
