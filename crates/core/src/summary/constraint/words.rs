//! The tables of the detector, language by language, in lower case. Patterns are those of [`super::matching`].

/// A language that is written with blanks.
pub(super) struct Language {
    /// Words that may come before an order and say nothing themselves.
    pub(super) leads: &'static [&'static str],
    /// Verbs as an order has them: what people forbid and require. A closed list, because "never knew" is no order.
    pub(super) verbs: &'static [&'static str],
    /// What begins a clause that orders.
    pub(super) opens: &'static [&'static str],
    /// What makes an order of a sentence wherever it is.
    pub(super) holds: &'static [&'static str],
    /// What speaks against all of it: guesses, tales and figures of speech.
    pub(super) unless: &'static [&'static str],
}

/// A language that is written without blanks, or with blanks that say little; parts of a pattern are joined by `..`.
pub(super) struct Unspaced {
    /// Letters that only this language of the list has.
    pub(super) is_own: fn(char) -> bool,
    /// What makes an order of a sentence.
    pub(super) holds: &'static [&'static str],
    /// What speaks against it.
    pub(super) unless: &'static [&'static str],
}

/// Titles of lists of constraints.
pub(super) const HEADINGS: &[&str] = &[
    "constraint", "constraints", "hard constraints", "requirement", "requirements", "hard requirements", "rule",
    "rules", "ground rules", "must-haves", "restrictions", // English
    "anforderungen", "vorgaben", "regeln", "einschränkungen", // German
    "contraintes", "exigences", "règles", // French
    "restricciones", "requisitos", "reglas", // Spanish
    "restrições", "regras", // Portuguese
    "требования", "ограничения", "правила", // Russian
    "约束", "约束条件", "要求", "规则", "限制", "約束", "規則", // Chinese
    "制約", "制約条件", "要件", "ルール", // Japanese
    "제약", "제약 조건", "제약사항", "요구사항", "규칙", // Korean
    "القيود", "المتطلبات", "القواعد", // Arabic
    "אילוצים", "דרישות", "כללים", // Hebrew
];

pub(super) static LANGUAGES: &[Language] =
    &[ENGLISH, GERMAN, FRENCH, SPANISH, PORTUGUESE, RUSSIAN, ARABIC, HEBREW];

const ENGLISH: Language = Language {
    leads: &[
        "please", "also", "and", "but", "so", "ok", "okay", "note", "important", "remember", "then", "that", "just",
        "again", "kindly", "just", "to", "one", "thing", "first", "finally", "yes", "no", "well", "instead",
    ],
    verbs: &[
        "access", "add", "allow", "alter", "amend", "answer", "apply", "ask", "assume", "autoformat", "be", "book",
        "break", "bump", "buy", "bypass", "cache", "call", "cancel", "catch", "change", "charge", "check", "choose",
        "cite", "close", "comment", "commit", "compile", "compress", "confirm", "connect", "contact", "contain",
        "convert", "copy", "create", "delete", "depend", "deploy", "disable", "disclose", "do", "document",
        "downgrade", "download", "drop", "edit", "email", "enable", "escape", "exceed", "exclude", "execute",
        "expose", "fetch", "fit", "fix", "follow", "force", "format", "generate", "give", "go", "guess", "hardcode",
        "ignore", "implement", "import", "include", "inline", "install", "introduce", "invent", "keep", "kill",
        "leak", "leave", "let", "lint", "log", "make", "match", "mention", "merge", "migrate", "mock", "modify",
        "move", "mutate", "name", "omit", "open", "order", "output", "overwrite", "override", "pass", "pay", "pick",
        "pin", "place", "post", "prefer", "preserve", "print", "produce", "propose", "publish", "push", "put",
        "quote", "read", "rebase", "recommend", "refactor", "refer", "reformat", "refund", "release", "rely",
        "remove", "rename", "reorder", "replace", "reply", "reset", "respect", "respond", "restart", "return",
        "reuse", "reveal", "revert", "rewrite", "run", "save", "select", "send", "set", "share", "ship", "show",
        "skip", "speak", "squash", "start", "stay", "stop", "store", "submit", "suggest", "summarise", "summarize",
        "support", "swallow", "switch", "tell", "test", "throw", "touch", "translate", "truncate", "trust", "try",
        "uninstall", "update", "upgrade", "upload", "use", "validate", "verify", "wait", "work", "wrap", "write",
    ],
    opens: &[
        "never|always VERB|_",
        "never ever VERB",
        "don't|dont VERB|_",
        "don't|dont ever VERB",
        "do not VERB|_",
        "do not ever VERB",
        "only ever VERB",
        "only VERB",
        "not touch|change|modify",
        "avoid *",
        "make sure",
        "be sure to",
        "ensure *",
        "stick to|with",
        "VERB only",
        "keep .. under|below|within",
        "limit|restrict .. to",
        "use|write|keep|answer|respond|reply|speak .. at most|least",
        "use|write|keep .. no more|less|longer than",
        "answer|respond|reply|write|speak only|always",
        "add|change|do|fix|implement|improve|make|migrate|optimise|optimize|refactor|rewrite|solve|update|write .. without adding|altering|breaking|changing|editing|introducing|modifying|removing|touching|using",
        "no new|additional|external|extra dependencies|dependency|packages|libraries|files|apis",
        "no third party *",
        "no emojis|emoji|comments|exceptions $",
        "no breaking changes",
    ],
    holds: &[
        "you must !be",
        "you must be !a|an|the|so|very|*ing|*ed",
        "must|should never|always|only|not VERB",
        "mustn't VERB",
        "must VERB|have|remain|run|start|end|exist",
        "must not have|contain|depend|exceed",
        "you should never|always|only|not",
        "you shouldn't VERB",
        "under no circumstances",
        "from now on",
        "i don't want you to",
        "i do not want you to",
        "i don't want any",
        "i do not want any",
        "i want you to never|always|only",
        "we never|always|only VERB",
        "is|are strictly|absolutely *ed|forbidden|mandatory",
        "is|are forbidden|prohibited|mandatory",
        "is|are off limits",
        "is|are not allowed|permitted|negotiable",
        "is|are non negotiable",
        "you may not",
        "has|have to be|stay|remain",
        "please never|don't|dont",
        "please do not",
    ],
    unless: &[
        "i|we|he|she|they|you|it must have",
        "i must",
        "there|something|someone|somebody|that must be",
        "must have been|gone|got|broken|*ed",
        "must be a|an|the|some|something|why|because|due|wrong|missing|how|what|where|that|it|in|nice|hard|great|*ing",
        "has|have to be a|an|some|something",
        "i|we have to",
        "should never|not|always happen|have|work|fail",
        "don't|dont|not worry|mind|know|care|bother",
        "always be *ing",
        "ensure|ensures|ensured that it was",
        "i was told|asked",
        "it|he|she|they said",
        "if you want|like|prefer",
        "be sure to let me know|check out",
        "make sure i understand|understood",
        "only try|start|work|do|run once|failed",
    ],
};

const GERMAN: Language = Language {
    leads: &["bitte", "und", "aber", "also", "wichtig", "hinweis", "außerdem", "dann", "denk", "daran"],
    verbs: &[
        "ändere", "ändern", "fass", "fasse", "lösche", "lösch", "pushe", "push", "committe", "verwende", "verwenden",
        "benutze", "nutze", "schreibe", "schreib", "füge", "installiere", "entferne", "antworte", "antworten",
        "frage", "frag", "rufe", "ruf", "erstelle", "bearbeite", "überschreibe", "nimm", "gib", "halte", "teste",
        "mach", "mache", "prüfe", "lass", "führe", "verändere", "verwenden", "benutzen", "nutzen",
    ],
    opens: &[
        "VERB .. nicht|nichts|nie|niemals|keine|keinen|kein|keinesfalls|nur|immer|ausschließlich",
        "nie|niemals|immer|nur|keinesfalls !ge*|wieder|mehr .. !ge* $",
        "niemals|nie VERB",
        "immer VERB",
        "nicht *en|anfassen $",
        "vermeide|vermeiden *",
        "stelle|stell sicher",
        "stellen sie sicher",
        "achte|achten darauf",
        "keine neuen abhängigkeiten|bibliotheken|dateien|pakete",
    ],
    holds: &[
        "darf|dürfen|darfst nicht|nichts|nie|niemals|nur|kein|keine|keinen|auf|unter",
        "darf|dürfen|darfst .. nicht|niemals *n",
        "müssen|musst .. *en|sein",
        "muss .. *en|sein|bleiben $",
        "soll|sollen|sollst nicht|nie|niemals|nur|immer",
        "auf keinen fall",
        "unter keinen umständen",
        "keinesfalls",
        "ab jetzt|sofort",
        "ist|sind verboten|pflicht|tabu|untersagt",
        "ist|sind zwingend|unbedingt|strikt *",
    ],
    unless: &[
        "ich|wir muss|müssen|musste|mussten|darf|dürfen",
        "muss|müssen ich|wir|wohl|ein|eine|es",
        "darf ich|man",
        "nie|niemals ge*|*t",
        "immer wieder|noch|mehr|weiter",
        "nur ein|eine|noch|zwei|drei",
        "soll|sollen nicht passieren|sein",
        "keine|kein ahnung|problem|sorge|zeit",
    ],
};

const FRENCH: Language = Language {
    leads: &["et", "mais", "svp", "stp", "aussi", "donc", "alors", "important", "note", "puis", "surtout"],
    verbs: &[
        "touche", "touchez", "toucher", "modifie", "modifiez", "modifier", "change", "changez", "changer",
        "supprime", "supprimez", "supprimer", "pousse", "poussez", "pousser", "utilise", "utilisez", "utiliser",
        "écris", "écrivez", "écrire", "réponds", "répondez", "répondre", "ajoute", "ajoutez", "ajouter", "fais",
        "faites", "faire", "mets", "mettez", "mettre", "lance", "lancez", "lancer", "garde", "gardez", "garder",
        "vérifie", "vérifiez", "vérifier", "demande", "demandez", "demander", "commite", "committez", "casse",
        "cassez", "casser", "renomme", "renommez", "renommer", "installe", "installez", "installer", "envoie",
        "envoyez", "envoyer", "oublie", "oubliez", "divulgue", "divulguez", "déploie", "déployez", "déployer",
    ],
    opens: &[
        "ne VERB .. jamais|pas|rien|aucun|aucune|que",
        "ne le|la|les|l' VERB .. jamais|pas",
        "ne pas VERB",
        "ne jamais VERB",
        "n'utilise|n'utilisez|n'ajoute|n'ajoutez|n'écris|n'écrivez|n'installe|n'installez|n'oublie|n'oubliez|n'envoie|n'envoyez .. jamais|pas|rien|aucun|aucune|que",
        "toujours|jamais VERB",
        "VERB toujours|uniquement|seulement|exclusivement",
        "évite|évitez|éviter *",
        "assure toi",
        "assurez vous",
        "veille|veillez à",
        "merci|prière de ne",
        "pas de nouvelle|nouvelles|nouveau|nouveaux *",
    ],
    holds: &[
        "il ne faut pas|jamais|surtout",
        "il faut toujours|absolument|impérativement",
        "tu dois|vous devez",
        "tu ne dois|peux",
        "vous ne devez|pouvez",
        "doit|doivent être|rester|toujours|absolument|impérativement|passer|fonctionner|contenir",
        "ne doit|doivent .. pas|jamais|plus",
        "est|sont interdit|interdite|interdits|interdites|obligatoire|obligatoires|impératif",
        "il est interdit|obligatoire|impératif",
        "en aucun cas",
        "sous aucun prétexte",
        "désormais",
        "dorénavant",
        "s'il te|vous plaît|plait ne",
    ],
    unless: &[
        "je|on dois|doit|peux",
        "ça|cela|ce|c'est doit",
        "doit être un|une|le|la|dû|que|parce",
        "a|ont dû",
        "n'oublie|n'oubliez pas que",
        "ne fais|faites pas attention",
    ],
};

const SPANISH: Language = Language {
    leads: &["por", "favor", "y", "pero", "también", "importante", "nota", "entonces", "además", "recuerda", "que"],
    verbs: &[
        "toques", "toque", "toquen", "modifiques", "modifique", "cambies", "cambie", "borres", "borre", "elimines",
        "elimine", "uses", "use", "utilices", "utilice", "hagas", "haga", "subas", "suba", "pongas", "ponga",
        "añadas", "añada", "agregues", "agregue", "edites", "edite", "envíes", "envíe", "ejecutes", "ejecute",
        "escribas", "escriba", "rompas", "rompa", "instales", "instale", "olvides", "respondas", "responda",
        "compartas", "comparta", "reveles", "revele", "reserves", "reserve", "compres", "compre", "superes",
        "usa", "utiliza", "escribe", "ejecuta", "responde", "haz", "mantén", "mantenga", "comprueba", "compruebe",
        "verifica", "verifique", "añade", "pregunta", "pregunte", "conserva", "conserve", "sigue", "siga",
    ],
    opens: &[
        "no|nunca|jamás VERB",
        "no lo|la|los|las|me|le VERB",
        "no me|te lo|la VERB",
        "nunca|jamás lo|la|los|las VERB",
        "siempre VERB",
        "solo|sólo|solamente|únicamente VERB",
        "VERB solo|sólo|solamente|únicamente|siempre|exclusivamente",
        "evita|evite|evitar *",
        "asegúrate|asegúrese de|que",
        "nada de *",
    ],
    holds: &[
        "debes|deben|deberás|deberán !de|haber|ser",
        "debe|deberá VERB|ser|estar|pasar|funcionar|mantenerse|usarse|contener",
        "no debes|debe|deben|puedes",
        "tienes|tiene|tienen que pasar|ser|usar|mantener|incluir|quedar",
        "hay que *",
        "está|están|queda|quedan prohibido|prohibida|prohibidos|prohibidas",
        "es|son obligatorio|obligatoria|obligatorios|obligatorias",
        "bajo ninguna circunstancia",
        "bajo ningún concepto",
        "en ningún caso",
        "de ahora en adelante",
        "a partir de ahora",
        "por favor no|nunca",
    ],
    unless: &[
        "debe|deben|debes de",
        "debe|deben ser|estar un|una|el|la|por|que|porque",
        "debe|deben haber",
        "por|supuesto que no",
        "no te preocupes",
        "hay que ver|reconocer|decir",
    ],
};

const PORTUGUESE: Language = Language {
    leads: &["por", "favor", "e", "mas", "também", "importante", "nota", "então", "além", "disso", "lembre", "se"],
    verbs: &[
        "mexa", "mexam", "altere", "alterem", "modifique", "mude", "apague", "exclua", "remova", "delete", "use",
        "utilize", "faça", "façam", "envie", "suba", "coloque", "adicione", "edite", "execute", "escreva", "quebre",
        "instale", "esqueça", "responda", "compartilhe", "revele", "reserve", "compre", "ultrapasse", "mantenha",
        "verifique", "pergunte", "preserve", "siga", "toque", "crie", "publique", "commite",
    ],
    opens: &[
        "não|nunca|jamais VERB",
        "sempre VERB",
        "só|somente|apenas VERB",
        "VERB só|somente|apenas|sempre|exclusivamente",
        "evite|evitar *",
        "certifique se",
        "garanta que",
        "nada de *",
    ],
    holds: &[
        "você deve|não",
        "vocês devem|não",
        "deve|devem sempre|ser|usar|passar|permanecer|ficar|conter|manter",
        "não deve|devem",
        "é|são proibido|proibida|proibidos|proibidas|obrigatório|obrigatória|obrigatórios|obrigatórias",
        "está|estão proibido|proibida|proibidos|proibidas",
        "em hipótese alguma|nenhuma",
        "sob nenhuma circunstância",
        "de jeito nenhum",
        "a partir de agora",
        "daqui em|para diante|frente",
        "por favor não|nunca",
    ],
    unless: &[
        "deve|devem ser um|uma|o|a|por|que|porque",
        "deve|devem ter|haver|estar",
        "você não sabe|viu|precisa",
        "não se preocupe",
        "não deve|devem demorar|ser",
    ],
};

const RUSSIAN: Language = Language {
    leads: &["пожалуйста", "и", "но", "а", "также", "важно", "ещё", "еще", "тогда", "потом", "главное"],
    verbs: &[
        "меняй", "меняйте", "менять", "изменяй", "изменяйте", "изменять", "трогай", "трогайте", "трогать", "удаляй",
        "удаляйте", "удалять", "пушь", "пушьте", "пушить", "используй", "используйте", "использовать", "пиши",
        "пишите", "писать", "отвечай", "отвечайте", "добавляй", "добавляйте", "добавлять", "делай", "делайте",
        "делать", "запускай", "запускайте", "запускать", "коммить", "коммитьте", "коммитить", "устанавливай",
        "устанавливайте", "спрашивай", "спрашивайте", "сохраняй", "сохраняйте", "проверяй", "проверяйте",
        "отправляй", "отправляйте", "отправлять", "ломай", "ломайте", "переименовывай", "публикуй", "публикуйте",
        "переписывай", "переписывайте", "бронируй", "бронируйте", "раскрывай", "раскрывайте", "хардкодь", "забывай",
    ],
    opens: &[
        "не|никогда|всегда|только VERB",
        "никогда не VERB",
        "никогда ничего не VERB",
        "ничего не VERB",
        "обязательно VERB",
        "VERB только|всегда|никогда",
        "избегай|избегайте *",
        "убедись|убедитесь что",
        "нельзя VERB",
        "никаких новых *",
    ],
    holds: &[
        "нельзя VERB",
        "запрещено",
        "запрещается",
        "недопустимо",
        "должен|должна|должно|должны !был|была|было|были|быть",
        "должен|должна|должно|должны быть !ошибка|какой|какая|какое",
        "ты|вы обязан|обязана|обязаны",
        "ни в коем случае",
        "ни при каких",
        "отныне",
        "с этого момента",
        "никогда не VERB",
    ],
    unless: &[
        "я|мы должен|должна|должны",
        "доступ .. запрещен|запрещён|запрещено",
        "не переживай|беспокойся|забывай что",
        "нельзя ли",
    ],
};

const ARABIC: Language = Language {
    leads: &["من", "فضلك", "رجاء", "ايضا", "لكن", "و", "ثم", "مهم", "ملاحظة", "الرجاء"],
    verbs: &[
        "تستخدم", "تستخدمي", "تستخدموا", "تغير", "تعدل", "تحذف", "تلمس", "تضف", "تكتب", "ترسل", "تقم", "تدفع",
        "تشارك", "تكشف", "تتجاوز", "تنشر", "تشغل", "تثبت", "تنس", "تحجز", "استخدم", "استخدموا", "اكتب", "اجب",
        "حافظ", "تحقق", "اسال", "شغل", "التزم", "اختبر",
    ],
    opens: &[
        "لا|ولا VERB",
        "لا تقم ب*",
        "دائما VERB",
        "VERB دائما|فقط",
        "VERB .. فقط $",
        "تاكد من|ان",
        "اياك *",
        "تجنب *",
        "عدم *",
    ],
    holds: &[
        "يجب ان|الا ي*|ت*|ن*",
        "يجب عدم|دائما|عليك",
        "لا يجوز|يسمح",
        "ممنوع *",
        "يمنع *",
        "يحظر *",
        "لا VERB .. ابدا",
        "من الان فصاعدا",
        "تحت اي ظرف",
    ],
    unless: &["يجب ان يكون هناك|خطا", "كان يجب", "تم منع"],
};

const HEBREW: Language = Language {
    leads: &["בבקשה", "וגם", "אבל", "גם", "חשוב", "ו", "אז", "נא", "שים", "לב"],
    verbs: &[
        "תשתמש", "תשתמשי", "תשתמשו", "השתמש", "השתמשי", "השתמשו", "תכתוב", "כתוב", "כתבו", "תענה", "ענה", "ענו",
        "תבדוק", "בדוק", "תשמור", "שמור", "שמרו", "תריץ", "הרץ", "תשאל", "שאל", "לשנות", "לגעת", "להשתמש", "למחוק",
        "לדחוף", "להוסיף", "לערוך", "לשלוח", "להתקין", "לכתוב", "לחשוף", "לשתף", "לחרוג", "לשבור", "לפרסם",
    ],
    opens: &[
        "אל ת*",
        "אין VERB",
        "לא VERB",
        "תמיד VERB",
        "רק VERB",
        "VERB תמיד|רק",
        "הקפד|הקפידי|הקפידו *",
        "ודא|ודאי|ודאו ש*",
        "הימנע|הימנעי|הימנעו *",
    ],
    holds: &[
        "אסור VERB",
        "אסור לך|לכם VERB",
        "חובה ל*",
        "חייב|חייבת|חייבים|חייבות ל*",
        "לעולם אל|לא ת*",
        "בשום אופן|פנים|מקרה",
        "מעתה|מעכשיו והלאה",
        "אין VERB",
    ],
    unless: &["אני|אנחנו חייב|חייבת|חייבים", "אל תדאג|תדאגי|תדאגו", "אסור היה"],
};

pub(super) static UNSPACED: &[Unspaced] = &[JAPANESE, KOREAN, CHINESE];

const JAPANESE: Unspaced = Unspaced {
    is_own: |letter| matches!(letter, '\u{3041}'..='\u{30fa}'),
    holds: &[
        "必ず..ください", "必ず..下さい", "必ず..こと", "必ず..てね", "必ず..べき", "ないでください", "ないで下さい",
        "ないでね", "ないでほしい", "しないこと", "さないこと", "わないこと", "らないこと", "えないこと", "てはいけません",
        "てはいけない", "ではいけません", "てはならない", "てはなりません", "は禁止です", "は禁止。", "を禁止します", "は厳禁",
        "なければなりません", "なければならない", "なければいけません", "は必須です", "は必須。", "のみ使用", "のみを使用", "だけを使って",
        "だけ使って", "常に..ください", "常に..こと", "絶対に..ない", "絶対に..ください", "以内で..ください", "以内に..ください",
        "今後は..ください", "今後は..こと", "を避けてください", "は使用不可", "は変更不可", "は不可です",
    ],
    unless: &[
        "必ずしも", "私は", "僕は", "俺は", "私が", "ですか", "ますか", "でしょうか", "かもしれ", "心配しないで", "気にしないで",
        "絶対に..かない", "絶対に..ませんでした", "わけではない",
    ],
};

const KOREAN: Unspaced = Unspaced {
    is_own: |letter| matches!(letter, '\u{ac00}'..='\u{d7a3}'),
    holds: &[
        "반드시..세요", "반드시..주세요", "반드시..십시오", "반드시..합니다", "반드시..한다", "반드시..할 것", "반드시..해 줘",
        "반드시..해줘", "절대..마", "절대..말", "절대..안 ", "절대로..마", "지 마세요", "지 마십시오", "하지 마", "하지마", "지 마라", "지 마.",
        "지 말 것", "지 말아", "지 마시", "금지입니다", "금지한다", "은 금지", "는 금지", "항상..세요", "항상..주세요", "항상..십시오",
        "항상..해줘", "항상..할 것", "항상..합니다", "만 사용하세요", "만 사용해", "만 사용할 것", "만 써", "해야 합니다", "해야 한다", "해야만",
        "면 안 됩니다", "면 안 돼", "면 안됩니다", "면 안 된", "서는 안 ", "해선 안 ", "꼭..세요", "꼭..주세요", "꼭..해줘",
        "이내로..주세요", "이내로..세요", "앞으로는..세요", "앞으로는..주세요",
    ],
    unless: &[
        "반드시 그런", "저는", "나는", "제가", "내가", "우리는 ", "까요", "나요", "인가요", "걱정하지", "신경 쓰지", "신경쓰지", "해야 했",
        "해야 할지", "항상..납니다", "항상..됩니다",
    ],
};

const CHINESE: Unspaced = Unspaced {
    is_own: |letter| matches!(letter, '\u{4e00}'..='\u{9fff}'),
    holds: &[
        "必须", "必須", "务必", "務必", "禁止", "严禁", "嚴禁", "不得", "切勿", "请勿", "請勿", "不要", "不准", "不许", "不許",
        "千万别", "千萬別", "绝不能", "絕不能", "绝不可", "絕不可", "绝对不能", "絕對不能", "不允许", "不允許", "一定要",
        "请始终", "請始終", "始终使用", "始終使用", "总是使用", "總是使用", "请总是", "請總是", "始终用", "始終用", "只能使用", "只能用",
        "只允许", "只允許", "只使用", "仅使用", "僅使用", "仅限", "僅限", "只准", "不能修改", "不能更改", "不能删除", "不能刪除",
        "不能使用", "不能提交", "不能超过", "不能超過", "不能改", "不能动", "不能動", "不能包含", "不可修改", "不可删除", "不可刪除",
        "不可使用", "不可超过", "不可超過", "你不能", "您不能", "别改", "別改", "别动", "別動", "别碰", "別碰", "别用", "別用",
        "别删", "別刪", "别提交", "別提交", "从现在起", "從現在起", "从现在开始", "從現在開始", "以后都", "以後都", "一律", "避免使用",
        "确保所有", "確保所有",
    ],
    unless: &[
        "要不要", "不要紧", "不要緊", "不要了", "我不要", "不要求", "能不能", "可不可以", "是不是", "不得不", "不得已", "恨不得", "怪不得",
        "巴不得", "舍不得", "捨不得", "不准确", "不準確", "被禁止", "我必须", "我必須", "不必须", "不必須", "不一定要", "吗。", "嗎。",
        "不要担心", "不要擔心", "不要客气", "不要客氣", "我们必须", "我們必須", "他说", "她说", "他說", "她說", "必须承认", "必須承認",
    ],
};
