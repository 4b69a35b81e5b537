/** Text that is HTML or SVG already. Made by `element` alone, so that a text of the PCE never becomes one. */
export class Markup {
  constructor(readonly text: string) {}
}

export type Child = Markup | string
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** Not allowed in XML, whatever they are written as: a file with one cannot be opened. */
const NOT_IN_XML =
  // eslint-disable-next-line no-control-regex -- these are meant
  /[\x00-\x08\x0B\x0C\x0E-\x1F\uFFFE\uFFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text as it stands inside an element or a quoted attribute, in HTML and in XML. */
export const encode = (text: string): string =>
  text.replace(NOT_IN_XML, '\uFFFD').replace(/[&<>"']/g, (character) => ENTITIES[character]!)

/** An element; children that are no Markup are texts. Attributes without a value are left out, `true` stands for itself. */
export function element(name: string, attributes: Attributes, ...children: readonly Child[]): Markup {
  let open = `<${name}`
  for (const [attribute, value] of Object.entries(attributes))
    if (value !== undefined && value !== false)
      open += ` ${attribute}="${encode(value === true ? attribute : String(value))}"`
  return new Markup(`${open}>${textOf(children)}</${name}>`)
}

/** Several as one, with nothing around them. */
export const fragment = (children: readonly Child[]): Markup => new Markup(textOf(children))

const textOf = (children: readonly Child[]): string =>
  children.map((child) => (typeof child === 'string' ? encode(child) : child.text)).join('')
