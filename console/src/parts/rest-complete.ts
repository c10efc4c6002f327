/** Completion of REST requests: methods, paths, parameters, fields and operators, all from the model. */
import type { CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { collection } from '../shell'
import type { Model } from '../types'

const METHODS = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'QUERY']
const PARAMETERS: [string, string][] = [
  ['fields', 'what to select'],
  ['where', 'a filter as JSON'],
  ['sort', 'order, - for descending'],
  ['first', 'size of the page'],
  ['after', 'a cursor'],
  ['count', '=exact adds the total'],
  ['search', 'words'],
]

export function completeRest(model: Model | null) {
  return (context: CompletionContext): CompletionResult | null => {
    const line = context.state.doc.lineAt(context.pos)
    const before = context.state.sliceDoc(line.from, context.pos)
    if (!model) return null
    if (/^[A-Z]*$/i.test(before) && line.number === 1) {
      return { from: line.from, options: METHODS.map((label) => ({ label, type: 'keyword', apply: `${label} /` })) }
    }
    if (!/^[A-Z]+\s/.test(before)) return null
    const path = /\s(\/[^\s?]*)$/.exec(before)
    if (path?.[1] !== undefined) return { from: context.pos - path[1].length, options: paths(model), validFor: /^[/\w-]*$/ }
    const resource = model.resources.find((each) => {
      const address = /\s(\/[^\s?/]+)/.exec(before)?.[1]
      return address === collection(each)
    })
    const word = context.matchBefore(/[\w]*$/)
    if (!resource || !word || (!word.text && !context.explicit && !/[?&,(=[]$/.test(before))) return null
    const fields = resource.fields.map((field) => ({ label: field.name, detail: field.type, info: field.doc ?? '', type: 'property' }))
    const last = before.slice(Math.max(before.lastIndexOf('?'), before.lastIndexOf('&')) + 1)
    if (/^\w+\[\w*$/.test(last) && !last.startsWith('fields')) {
      const field = resource.fields.find((each) => each.name === last.split('[')[0])
      return { from: word.from, options: (field?.filter ?? []).map((label) => ({ label, type: 'keyword', apply: `${label}]=` })) }
    }
    if (last.startsWith('fields=') || last.startsWith('sort=')) return { from: word.from, options: fields }
    const named = resource.fields.find((each) => last.startsWith(`${each.name}=`))
    if (named?.values?.length) return { from: word.from, options: named.values.map((label) => ({ label, type: 'enum' })) }
    if (last.includes('=')) return null
    return { from: word.from, options: [...PARAMETERS.map(([label, detail]) => ({ label, detail, type: 'keyword', apply: `${label}=` })), ...fields] }
  }
}

const paths = (model: Model) =>
  model.resources.flatMap((resource) => {
    const own = collection(resource)
    return [own, ...(resource.changes ? [`${own}/changes`] : []), `${own}/summary`, `${own}/groups`].map((label) => ({ label, detail: resource.name, type: 'class' }))
  })
