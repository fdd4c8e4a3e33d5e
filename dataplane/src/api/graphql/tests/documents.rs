//! Documents as sentences.

use super::*;

#[test]
fn queries_pass_in_every_form() {
    for document in [
        "{a}",
        "query{a}",
        "query A{a}query B{b}{c}",
        "query($a:Int=1)@skip(if:true){a}",
        "query A($a:[[Int!]!]!=[[1]],$b:In={c:{d:[E,null,true,1.5,\"\"]}}@x(y:1)){a(b:$a,c:$b)}",
        "{a:b c:d(e:1)@f{g} ...H ...on I{j} ...{k} ...@l{m}}fragment H on N@o{p{q}}",
        "fragment A on B{c}query{...A}fragment D on E{f}",
        "# first\r\nquery {\r\n\ta, b,, c # last\n}",
        "{a(b:\"\u{e9}\\u00e9\\\"\\\\\\\\n \\ud83d\\ude00\")} # \u{1f600}",
        "{a(b:\"\"\"\n c\\d \\ \"\"\", e:[\"\" \"\",\"\"])}",
        "{__typename __schema{types{name}}}",
        // The shapes that gh sends.
        "\n\tfragment pr on PullRequest{number,title,author{login,...on User{name}},\
         commits(last: 1) {nodes {commit {oid}}}}\n\t\n\tquery Status($owner: String!, $n: Int = 10) {\n\t\t\
         repository(owner: $owner) {\n\t\t\tpullRequests(first: $n, orderBy: { field: CREATED_AT, direction: DESC }) \
         {\n\t\t\t\ttotalCount: count\n\t\t\t\tnodes {\n\t\t\t\t\t...pr\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n\t",
        "query Fields{Issue: __type(name: \"Issue\"){fields(includeDeprecated: true){name}}}",
        "fragment item on Item{contexts(first:100) {nodes {__typename...on Context {state},...on Run {name}}}}{...item}",
        "query List($endCursor:String$per_page:Int!){viewer{gists(after:$endCursor,first:$per_page){nodes{name}}}}",
    ] {
        assert_eq!(judge(&asking(document)), Ok(()), "{document}");
    }
}

#[test]
fn the_word_mutation_is_no_mutation_where_it_names_something() {
    for document in [
        "{mutation}",
        "{mutation{mutation}}",
        "{a:mutation mutation:a subscription:subscription}",
        "query mutation{a}",
        "query A{...mutation}fragment mutation on mutation{a}",
        "{a(mutation:mutation,b:$mutation,c:{mutation:[mutation]})@mutation(mutation:mutation)}",
        "query($mutation:mutation=mutation){a}",
        "{a(b:\"mutation {x}\", c:\"\"\"\n} mutation {x}\n\"\"\", d:\"} mutation{x}#\")}",
        "# mutation {x}\n{a #} mutation {x}\n}#mutation{x}",
        "{mutations Mutation}",
    ] {
        assert_eq!(judge(&asking(document)), Ok(()), "{document}");
    }
}

#[test]
fn a_mutation_is_refused_wherever_it_stands() {
    for document in [
        "mutation{a}",
        "mutation A{a}",
        "mutation($a:In!)@b{a(c:$a)}",
        ",,\n mutation\n{a}",
        "#\nmutation{a}",
        "#\r\nmutation{a}",
        "query A{a}mutation B{b}",
        "query A{a}#\nmutation B{b}",
        "mutation B{b}query A{a}",
        "{a}mutation{b}",
        "fragment A on B{c}mutation{...A}",
        "mutation{...A}fragment A on B{c}",
        "{a(b:\"\")}mutation{b}",
        "{a(b:\"\"\"\"\"\")}mutation{b}",
        "{a(b:\"\\\"\")}mutation{b}",
        "query mutation{a}mutation query{b}",
    ] {
        assert_eq!(verdict(document), "graphql-mutation", "{document}");
        let subscription = document.replace("mutation", "subscription");
        assert_eq!(verdict(&subscription), "graphql-subscription", "{subscription}");
    }
}

#[test]
fn no_operation_name_selects_a_mutation_away() {
    for name in ["null", "\"A\"", "\"B\"", "\"\""] {
        let body = format!(r#"{{"query":"query A{{a}} mutation B{{b}}","operationName":{name}}}"#);
        assert_eq!(judge(body.as_bytes()).unwrap_err().code(), "graphql-mutation", "{name}");
    }
}

#[test]
fn an_escape_in_json_hides_nothing() {
    let body = br#"{"query":"\u006d\u0075tation{a}"}"#;
    assert_eq!(judge(body).unwrap_err().code(), "graphql-mutation");
    let comment = br#"{"query":"{a}#\u000amutation{b}"}"#;
    assert_eq!(judge(comment).unwrap_err().code(), "graphql-mutation");
}

#[test]
fn the_words_name_the_operation_and_say_what_a_run_may_do() {
    let said = "is not let through; the API is read-only for a run: change code by pushing a branch, and leave the rest \
                (pull requests, comments, reviews, releases) to whoever started the run";
    for (document, operation) in [
        ("mutation PullRequestCreate{a}", "mutation PullRequestCreate"),
        ("mutation{a}", "mutation"),
        ("{a}subscription S($a:B){c}", "subscription S"),
    ] {
        assert_eq!(words(&asking(document)), format!("the {operation} {said}"));
    }
}

#[test]
fn only_operations_and_fragments_are_defined() {
    for document in [
        "type A{b:C}",
        "{a}type A{b:C}",
        "{a} extend type A{b:C}",
        "schema{query:A mutation:B}",
        "{a}directive@a on FIELD",
        "{a} \"mutation\" scalar A",
        "input A{b:C}{a}",
        "fragment A on B{c}",
    ] {
        assert_eq!(verdict(document), "graphql-definition", "{document}");
    }
}

#[test]
fn a_document_that_does_not_parse_whole_is_refused_with_the_place() {
    for (document, line) in [
        ("", 1),
        ("#\n#", 2),
        ("{a", 1),
        ("{a}}", 1),
        ("{a}\n\nb", 3),
        ("{}", 1),
        ("query", 1),
        ("query{}", 1),
        ("query A B{a}", 1),
        ("querY{a}", 1),
        ("Mutation{a}", 1),
        ("{a}\nmutation", 2),
        ("mutation A", 1),
        ("{a(b:)}", 1),
        ("{a(b:[1)}", 1),
        ("{a(b:{c:1)}", 1),
        ("{a:}", 1),
        ("{a b:c:d}", 1),
        ("{a@}", 1),
        ("{...}", 1),
        ("{..a}", 1),
        ("{a(b:1c)}", 1),
        ("{a(b:00)}", 1),
        ("query($a){a}", 1),
        ("query($a:Int=$b){a}", 1),
        ("fragment on on A{b}{a}", 1),
        ("\"text\" query{a}", 1),
        ("\n{a(b:\"", 2),
        ("{a(b:\"\n\")}", 1),
        ("{a(b:\"c\nd\")}", 1),
        ("{a(b:\"\"\"c\"\")}", 1),
        ("{a(b:\"\\x\")}", 1),
        ("{a(b:\"\\ud800\")}", 1),
        ("{a(b:\"\\\")}", 1),
        ("{a}\u{a0}", 1),
        ("{\u{e9}}", 1),
        ("query\u{2003}{a}", 1),
        ("{a};", 1),
        ("{a}\\", 1),
    ] {
        let refused = judge(&asking(document)).unwrap_err();
        assert_eq!(refused.code(), "graphql-unparseable", "{document}: {refused}");
        let place = matches!(&refused, Unaskable::Unparseable { line: said, .. } if *said == line);
        assert!(
            place || matches!(refused, Unaskable::Ambiguous(Ambiguity::StringLines)),
            "{document}: {refused:?}"
        );
    }
    let words = words(&asking("{a"));
    assert_eq!(
        words,
        "the query cannot be read: expected R_CURLY, got EOF (line 1); send one whole GraphQL document of queries and \
         fragments"
    );
}

#[test]
fn a_field_that_holds_a_credential_is_refused_under_any_alias() {
    for document in [
        "{tempCloneToken}",
        "{a{b{tempCloneToken}}}",
        "{a:tempCloneToken}",
        "{tempCloneToken:tempCloneToken}",
        "{a #\n: #\ntempCloneToken @include(if:true)}",
        "{...on A{tempCloneToken}}",
        "{...{...@a{b:tempCloneToken}}}",
        "{a}fragment F on A{tempCloneToken}",
        "{a}query B{tempCloneToken}",
        "{tempCloneToken(a:1){b}}",
    ] {
        for field in ["tempCloneToken", "tarballUrl", "zipballUrl"] {
            let document = document.replace("tempCloneToken", field);
            assert_eq!(verdict(&document), "graphql-credential", "{document}");
        }
    }
}

#[test]
fn the_credential_s_name_may_name_anything_else() {
    for document in [
        "{tempCloneToken:name}",
        "{a(tempCloneToken:1)}",
        "{a(b:tempCloneToken)}",
        "{a(b:\"tempCloneToken\")}",
        "{a(b:{tempCloneToken:$tempCloneToken})@tempCloneToken}",
        "query tempCloneToken{...tempCloneToken}fragment tempCloneToken on tempCloneToken{a}",
        "{a}#tempCloneToken",
        "{tempclonetoken tempCloneTokens}",
    ] {
        assert_eq!(judge(&asking(document)), Ok(()), "{document}");
    }
}
