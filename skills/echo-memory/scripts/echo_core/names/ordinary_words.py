"""Words that mean something by themselves, so that a name spelled like one needs more than a match (spec 3.2, 5.4).

STOP_WORDS carry grammar, not content: finding them tells nothing. ORDINARY adds content words of everyday English and
German, first names that are words among them. Both hold folded words.
"""
from __future__ import annotations

_GRAMMAR = """
a an the this that these those some any each every either neither no none not nor and or but if then else so than as
at
by for from in into of off on onto out over to up upon with within without about above across after again against
along
among around before behind below beneath beside besides between beyond down during except inside like near since
through throughout till toward towards under until via while because although though whether where when why how what
which who whom whose there here now just only also too very much many more most other another such own same few less
least all both do does did doing done don have has had having be am is are was were been being will would shall should
can could may might must ought i me my mine myself you your yours yourself he him his himself she her hers herself it
its itself we us our ours ourselves they them their theirs themselves one ones s t re ve ll d m dont doesnt didnt isnt
arent wasnt werent wont cant couldnt shouldnt wouldnt havent hasnt hadnt im ive id youre theyre thats whats lets
tell say said know get got give given make made please ever yet still even
der die das den dem des ein eine einer eines einem einen kein keine und oder aber wenn dann als wie wo wann warum wer
wen wem wessen was welche welcher welches welchen welchem ist sind war waren sein seine seiner seinem seinen ihr ihre
ihrer ihrem ihren hat haben hatte hatten wird werden wurde wurden worden kann konnen konnte konnten muss mussen musste
soll sollen sollte darf durfen mag ich du er sie es wir mich mir dich dir ihn ihm uns euch sich im in an am auf aus
bei
beim bis durch fur gegen mit nach ohne seit um unter uber von vom vor zu zum zur zwischen nicht nur auch noch schon
sehr
mehr so da dass ob weil hier dort dieser diese dieses diesem diesen jeder jede jedes alle man doch etwa viel viele
wieviel fuer ueber koennen muessen duerfen
le la les un une des du de au aux et ou mais donc or ni car que qui quoi quel quelle quels quelles dont est sont etait
etaient etre ete a ont avait avoir dans par pour sur avec sans sous entre vers chez ne pas plus moins tres ce cet
cette
ces il elle ils elles je tu nous vous on se sa son ses leur leurs comment pourquoi quand combien
el los las una unos unas y o pero si como donde cuando quien quienes cual cuales cuanto cuantos que es son era eran
fue
fueron ser sido ha han habia en del al con sin sobre entre hasta desde para por no mas muy su sus se lo le les este
esta
estos estas
il lo gli uno e ed ma se che chi cui quale quali quanto quanti dove come perche quando e sono era erano stato nel
nella
dei delle della dello degli con su per tra fra non piu
и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее мне было вот от меня еще нет о из
ему
когда ли если или ни быть был была были него до вас они тут где есть для мы их чем сам чтоб без чего раз себе под
будет
кто этот этого какой какая какое какие каком какого какую каких какими сколько почему который которая которое которые
которого которой этом это эта эти при об также между после
через
的 了 是 在 和 与 有 我 他 她 它 这 那 什么 哪里 哪个 哪些 怎么 怎样 多少 几个 谁 为什么 何时
何地 是什 么时 时候 什么时候 是谁 哪一 是哪 个是
は が を に の と も で へ や から まで です ます した する いつ どこ だれ なに 何が 何を
"""

_CONTENT = """
ability able access account act action active add address advice age agenda agent agree aid aim air alarm alert amber
amount angel anger animal answer apple april apply area arm army art arch article ash ask asset attack august aunt
autumn award baby back bad bag baker balance ball band bank bar barn base basic basket bat bath bay beach bear beat
beauty bed begin bell belt bench best better big bill bird birth bit black blake blank block blood bloom blue board
boat body bond bone book border born boss bottle bottom bowl box boy branch brand brave bread break brick bridge brief
bright bring brook brother brown brush buck bud budget bug build building bull burn bus bush business busy butler
butter buy cake call calm camera camp campaign candy cap capital car card care carpenter carol carry case cash cast
castle cat catch cause cell center central century chain chair chance chandler change channel chapter charge charity
charm chart chase chat check chef cherry chest chief child children choice church circle city claim clark class clay
clean clear clerk cliff climb clock close cloth cloud club coach coal coast coat code coffee cold cole collect college
color colour colt come command comment common community company concept concern contact content control cook cool
cooper copper copy coral core corn corner cost count country couple course court cover craft crash cream create credit
crew crime crisis cross crowd crown culture cup cure current curve custom customer cut cycle daily daisy dance danger
dark dash data date daughter dawn day dead deal dean dear death debt december decide decision deep deer degree delta
demand design desk detail develop device diamond die diet difference dinner direct dirt dish doc doctor document dog
dollar door double doubt draft drake dream dress drew drink drive drop dry duck duke dust duty eagle early earl earn
earth ease east easy eat echo edge edit effect egg eight email emerald end enemy energy engine enter entry error
escape essay estate event exam example exchange exit express eye face fact factor fail fair faith fall family famous
fan far farm farmer fashion fast fate father fear feature february feed feel fern field fig fight figure file fill
film final find fine finger finish fire firm first fish fisher fit five fix flag flat flight floor flow flower fly
focus fog folder follow food fool foot force ford forest forget fork form fort forward found four fox frame frank free
freedom fresh friday friend frost fruit fuel full fun function fund future gain game gap garden gardner gas gate gene
general gift ginger girl glass global glory go goal god gold good grace grade grain grand grant grape graph grass gray
great green grey ground group grow growth guard guest guide gun guy hair half hall ham hand handle hang happy harbor
hard harmony harry hat hawk hazel head health hear heart heat heath heaven heavy height hello help herb hero hey hi
hide high hill history hit hold hole holiday holly home honey hood hook hope horn horse host hot hotel hour house hub
human hunt hunter ice idea image impact inbox index info information input insight interest internet invoice iris iron
island issue item ivy jack jade jam january jar jasmine jay jean jet jewel job jobs john join joke josh journal
journey joy judge juice july jump june junior jury justice kay keen keep ken key kid kind king kit kitchen knight
knife knowledge lab labor lack lad lady lake lamb lamp land lane lance language large lark last late laugh laurel law
lawn lay lead leader leaf league learn learning leather leave lee left leg legal legend lemon lesson letter level
liberty library life light lily lime limit lincoln line link lion list listen little live loan local lock logic long
look lord lose loss lot loud love low luck lunch lynx machine mad magic mail main major man manage manager management
map maple marble march margin mark market marsh marshall mason mass master match mate matter max may mayor meal mean
measure meat media medical meet meeting melody member memo memory mercury mercy message metal method mid middle mile
milk mill miller mind mine minute mint mirror miss mission mistake mix mobile mode model modern moment monday money
month moon moor moral morning moss mother motion mount mountain mouse mouth move movie music myrtle mystery nail name
nation nature neck need network never new news next nice nick night nine noble noise normal north nose note notes
nothing notice november novel number nurse oak object ocean october odd offer office oil old olive open opal operation
opinion option orange orchid order other otter outcome output owner pace pack page pain paint painter pair palm pan
pansy paper parent paris park parker part partner party pass past pat patch path patience patient pattern patty pay
peace peach peak pearl pen penny people pepper percy perfect period person phase phone photo phrase pick picture pie
piece pike pilot pine pink pipe place plain plan plane planning planet plant plate play player plaza plot plum poem
point police policy pool poor pop pope poppy port porter position post pot potter pound power practice pray press
pretty price pride priest prime prince print prior prize problem process product profile profit program progress
project promise proof property prosper prudence public pull pure purpose push python quality queen question quick
quiet quote race radio rail rain raise ram random ranger rank rate ray reach read reader ready real reason record red
reed reference reflect region relate release rent reply report research resource rest result return reverend review
rhythm rice rich ridge right ring rise risk river road rob robin rock rod role roll roof room root rope rose rough
round route row royal ruby rule run rush russet rust ryan sage sail saint sale salt sand sandy sapphire saturday save
savage sawyer scale scene school science scope score scout screen script sea seal search season seat second secret
section security see seed seem self sell send senior sense september serve server service session set seven sex shadow
shape share sharp shaw shelf shell shepherd shield shift ship shirt shock shoe shop shore short shot show sick side
sign signal silver simple sing singer single sir sister site six size skill skin sky skip slack slate sleep slide slow
small smart smile smith smoke snow social society soft soil soldier son song sort soul sound source south space spark
speak speed spell spencer spend spirit sport spot spring square staff stage stand standard star stark start state
station status steel step sterling stewart stick still stock stone stop store storm story strange stream street
strength stress strike strong structure student study stuff style subject success sue sugar suit summary summer sun
sunday sunny supply support sure surface surprise sutton sweet swift swim system table tag tail talk tall tanner
target task taste tax taylor tea teach teacher team tech temple ten tender term terry test testing text thanks theme
theory thing think third thomas thought three thursday tide tiger time tip tire title today todo toll tom tomorrow
tone tool top topic total touch tour tower town track trade tradition traffic train training travel treasure tree
trend trial trip trouble truck true trust truth try tuesday tucker tune turn turner twin two type uncle union unit
unity update use user value van vector verse version victor victory video view village vine violet vision visit voice
vote wade wagner waiter walk walker wall walter want war ward warm warner watch water wave way wayne weather weaver
web wednesday week weekly weight welcome well west wheat wheel white whole wick wide wife wild win wind window wine
wing winner winter wise wish wolf woman wonder wood woods word work worker world worth wright write writer year yellow
yes yesterday young youth zone zoom arbeit arzt auto bach bauer baum berg besuch bett bild blau blume brief bruder
buch burg busch dank ding dorf dreh eis ende erde essen fahrt familie feld fenster fest feuer fischer fluss fragen
frau frei freund fuchs garten gast geld gold gross gut haar hahn hand haus heim herr herz himmel hof holz hund jager
jahr jung kaiser kalt karte katze kind klein koch konig kopf kraft krieg kunde kunst lang leben lehrer leute licht
liebe maier mann maurer meer meister mensch montag morgen muller mutter nacht name natur neu ofen ort paar platz plan
preis punkt rat raum recht reich richter ring sache sand schafer schiff schmidt schneider schnell schule schwarz see
sommer sonne sonntag spiel sprache stadt stein stern stimme strasse stuck stunde tag tier tisch tod ton tor turm ufer
vater vogel wald wagen wasser weber weg wein welt wetter wind winter woche wolf wort wunsch zahl zeit ziel zimmer zug
zukunft
"""

STOP_WORDS = frozenset(_GRAMMAR.split())
ORDINARY = STOP_WORDS | frozenset(_CONTENT.split())
