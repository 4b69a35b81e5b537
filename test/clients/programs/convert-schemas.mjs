/**
 * Converts the schemas of a list of tools, which is read from standard input as JSON, with the converters that clients bring. Prints for
 * each converter how many schemas it took, and which of them it refused or did not pass on whole.
 */
import { isDeepStrictEqual } from 'node:util'
import { createMCPClient } from '@ai-sdk/mcp'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { ChatGoogleGenerativeAI } from '@langchain/google-genai'
import { loadMcpTools } from '@langchain/mcp-adapters'
import { getAllMcpTools } from '@openai/agents'
import { generateText } from 'ai'
import { jsonSchemaToZod } from 'json-schema-to-zod'
import { z } from 'zod'

let text = ''
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk
const tools = JSON.parse(text)
const list = () => JSON.parse(text)

/** Applies a change to every schema inside a schema, innermost first. */
function mapSchemas(schema, change) {
  const mapOf = (parts) =>
    Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, mapSchemas(part, change)]))
  const { properties, items, anyOf, additionalProperties: others } = schema
  return change({
    ...schema,
    ...(properties && { properties: mapOf(properties) }),
    ...(items && { items: mapSchemas(items, change) }),
    ...(anyOf && { anyOf: anyOf.map((part) => mapSchemas(part, change)) }),
    ...(typeof others === 'object' && { additionalProperties: mapSchemas(others, change) }),
  })
}

/** What all dialects can say. Closed and open objects are the same, since Google's has no word for either. */
const plain = (schema) =>
  mapSchemas(
    schema,
    ({ $schema: _dialect, $defs: _parts, additionalProperties: others, required = [], properties = {}, ...rest }) => ({
      ...rest,
      ...(Object.keys(properties).length > 0 && { properties }),
      ...(required.length > 0 && { required: required.toSorted() }),
      ...(typeof others === 'object' && Object.keys(others).length > 0 && { additionalProperties: others }),
    }),
  )

/**
 * Puts each shared part where it is referred to. Zod's converters get outputs so, since json-schema-to-zod loosens a reference to any
 * value; z.fromJSONSchema reads it. What they make of references themselves is therefore not compared.
 */
function inlined(schema, parts = schema.$defs) {
  return mapSchemas(schema, ({ $defs: _parts, ...rest }) =>
    rest.$ref === undefined ? rest : inlined(parts[rest.$ref.replace('#/$defs/', '')], parts),
  )
}

const FIELDS = ['type', 'description', 'enum', 'items', 'properties', 'required']
const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object']

/** What Google's interface refuses in the parameters of a function (the type Schema of its reference; the errors of its users). */
function refusedByGoogle(schema, path = '') {
  const { type, enum: values, items, properties, required = [] } = schema
  const faults = [
    ...Object.keys(schema).filter((key) => !FIELDS.includes(key)),
    !TYPES.includes(type) && 'type',
    values !== undefined &&
      (type !== 'string' || values.some((value) => typeof value !== 'string' || value === '')) &&
      'enum',
    (type === 'array') !== (items !== undefined) && 'items',
    (type === 'object') !== Object.keys(properties ?? {}).length > 0 && 'properties',
    required.some((name) => properties?.[name] === undefined) && 'required',
  ]
  return [
    ...faults.filter((fault) => fault !== false).map((fault) => `${path} ${fault}`),
    ...(items === undefined ? [] : refusedByGoogle(items, `${path}[]`)),
    ...Object.entries(properties ?? {}).flatMap(([name, part]) => refusedByGoogle(part, `${path}.${name}`)),
  ]
}

/** Undoes what strict mode does to a schema: there each argument is required, and an optional one may be null. */
const relaxed = (schema, original) => {
  const { properties: own = {}, items, required: _all, additionalProperties: _closed, ...rest } = schema
  const { properties = {}, required } = original
  const bare = (name) => {
    const { anyOf, ...beside } = own[name]
    return anyOf === undefined ? beside : anyOf[0]
  }
  return {
    ...rest,
    ...(items && { items: relaxed(items, original.items) }),
    ...(required && { required }),
    ...('properties' in original && {
      properties: Object.fromEntries(
        Object.keys(own).map((name) => [name, relaxed(bare(name), properties[name] ?? {})]),
      ),
    }),
  }
}

async function langchainToGoogle() {
  const loaded = await loadMcpTools('svc', { listTools: async () => ({ tools: list() }) })
  const model = new ChatGoogleGenerativeAI({ apiKey: 'none', model: 'gemini-2.5-flash' })
  const declared = model.invocationParams({ tools: loaded }).tools[0].functionDeclarations
  return judge(declared, ({ parameters }, { inputSchema }) =>
    parameters === undefined
      ? Object.keys(inputSchema.properties).length > 0 && ['no parameters']
      : [...refusedByGoogle(parameters), ...differences(parameters, inputSchema)],
  )
}

async function openaiAgentsStrict() {
  const none = async () => undefined
  const server = { name: 'svc', cacheToolsList: false, connect: none, close: none, listTools: async () => list() }
  const functions = await getAllMcpTools({ mcpServers: [server], convertSchemasToStrict: true })
  return judge(functions, ({ strict, parameters }, { inputSchema }) =>
    strict ? differences(relaxed(parameters, inputSchema), inputSchema) : ['not strict'],
  )
}

async function aiSdkToGoogle() {
  const transport = {
    start: async () => undefined,
    close: async () => undefined,
    async send({ id, method, params }) {
      const info = {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      }
      const result = method === 'initialize' ? info : { tools: list() }
      if (id !== undefined) void Promise.resolve().then(() => this.onmessage({ jsonrpc: '2.0', id, result }))
    },
  }
  const client = await createMCPClient({ transport })
  let sent
  const google = createGoogleGenerativeAI({
    apiKey: 'none',
    async fetch(_url, { body }) {
      sent = JSON.parse(body)
      throw new Error('that was all')
    },
  })
  const asked = { model: google('gemini-2.5-flash'), tools: await client.tools(), prompt: 'none', maxRetries: 0 }
  await generateText(asked).catch(() => undefined)
  return judge(
    sent.tools[0].functionDeclarations,
    ({ parameters, parametersJsonSchema = parameters }, { inputSchema }) =>
      differences(parametersJsonSchema, inputSchema),
  )
}

/** What Zod has of a schema. What it writes about any list, any object, any name and any number of JavaScript says nothing. */
const fromZod = (schema) =>
  mapSchemas(z.toJSONSchema(schema, { unrepresentable: 'throw', io: 'input' }), ({ type, propertyNames, ...own }) => {
    const { minimum, maximum, items = {}, properties = {}, const: only, ...rest } = own
    return {
      ...rest,
      ...(only !== undefined && { enum: [only] }),
      ...(Array.isArray(type) ? { anyOf: type.map((one) => ({ type: one })) } : type && { type }),
      ...(propertyNames && propertyNames.type !== 'string' && { propertyNames }),
      ...(minimum !== Number.MIN_SAFE_INTEGER && minimum !== undefined && { minimum }),
      ...(maximum !== Number.MAX_SAFE_INTEGER && maximum !== undefined && { maximum }),
      ...(Object.keys(items).length > 0 && { items }),
      ...(Object.keys(properties).length > 0 && { properties }),
    }
  })
const both = (convert) =>
  judge(tools, ({ inputSchema, outputSchema }) =>
    [inputSchema, inlined(outputSchema)].flatMap((schema) => differences(fromZod(convert(schema)), schema)),
  )
const zod = () => both((schema) => z.fromJSONSchema(schema))
const jsonSchemaToZodSource = () => both((schema) => new Function('z', `return ${jsonSchemaToZod(schema)}`)(z))

/** Where two schemas differ in what all dialects can say. */
function differences(converted, original) {
  const [is, was] = [plain(converted), plain(original)]
  return isDeepStrictEqual(is, was) ? [] : [`${JSON.stringify(is)} is not ${JSON.stringify(was)}`]
}

function judge(converted, findFaults) {
  const faults = {}
  for (const tool of tools) {
    // Some converters write other names.
    const one = converted.find(({ name }) => name.replaceAll('_', '-').endsWith(tool.name))
    let found
    try {
      found = one === undefined ? ['left out'] : findFaults(one, tool) || []
    } catch (error) {
      found = [String(error)]
    }
    if (found.length > 0) faults[tool.name] = found
  }
  return { taken: converted.length, faults }
}

const results = {}
for (const convert of [langchainToGoogle, openaiAgentsStrict, aiSdkToGoogle, zod, jsonSchemaToZodSource])
  results[convert.name] = await convert()
process.stdout.write(JSON.stringify(results))
