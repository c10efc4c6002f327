/** The schema for completion and checks. That of a very large model takes the service seconds: it is read on request. */
import { buildClientSchema, getIntrospectionQuery, type GraphQLSchema } from 'graphql'
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api'
import { shared } from '../shell'
import { useStore } from '../store'
import { say } from './ui'

const MOST_FIELDS = 3000

export function useSchema(): { schema: GraphQLSchema | undefined; load: (() => void) | null } {
  const { model } = useStore(shared)
  const [schema, setSchema] = useState<GraphQLSchema>()
  const [wanted, setWanted] = useState(false)
  const isLarge = (model?.resources ?? []).reduce((sum, resource) => sum + resource.fields.length, 0) > MOST_FIELDS
  useEffect(() => {
    if (isLarge && !wanted) return
    ask<any>('POST', '/graphql', { body: { query: getIntrospectionQuery() } }).then(
      (answer) => answer.data && setSchema(buildClientSchema(answer.data)),
      () => say('The schema could not be read: there is no completion.'),
    )
  }, [model, wanted])
  return { schema, load: isLarge && !wanted ? () => setWanted(true) : null }
}
